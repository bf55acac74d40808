import { LabIcon } from '@jupyterlab/ui-components';

/** Something is wrong; takes the colour of the text. */
export const warningIcon = new LabIcon({
  name: 'jupyter-dist-server:warning',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="14" aria-hidden="true">
  <path fill="currentColor" fill-rule="evenodd" d="M7.1 1.9a1 1 0 0 1 1.8 0l5.9 11A1 1 0 0 1 13.9 14.4H2.1a1 1 0 0 1-.9-1.5zM7.2 5.5V10h1.6V5.5zM7.2 11.2v1.6h1.6v-1.6z"/>
</svg>`
});
