import { LabIcon } from '@jupyterlab/ui-components';

/** Four ranks, each with its coloured edge. */
export const ranksIcon = new LabIcon({
  name: 'jupyter-dist-server:ranks',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" fill-rule="evenodd" d="M2 3h9v8H2zM5.5 4.5v5h4v-5zM13 3h9v8h-9zM16.5 4.5v5h4v-5zM2 13h9v8H2zM5.5 14.5v5h4v-5zM13 13h9v8h-9zM16.5 14.5v5h4v-5z"/>
</svg>`
});
