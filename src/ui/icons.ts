import { LabIcon } from '@jupyterlab/ui-components';

/** Four ranks, each with its coloured edge. */
export const ranksIcon = new LabIcon({
  name: 'jupyter-dist-server:ranks',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" fill-rule="evenodd" d="M2 3h9v8H2zM5.5 4.5v5h4v-5zM13 3h9v8h-9zM16.5 4.5v5h4v-5zM2 13h9v8H2zM5.5 14.5v5h4v-5zM13 13h9v8h-9zM16.5 14.5v5h4v-5z"/>
</svg>`
});

/** Something is wrong; takes the colour of the text. */
export const warningIcon = new LabIcon({
  name: 'jupyter-dist-server:warning',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="14" aria-hidden="true">
  <path fill="currentColor" fill-rule="evenodd" d="M7.1 1.9a1 1 0 0 1 1.8 0l5.9 11A1 1 0 0 1 13.9 14.4H2.1a1 1 0 0 1-.9-1.5zM7.2 5.5V10h1.6V5.5zM7.2 11.2v1.6h1.6v-1.6z"/>
</svg>`
});
