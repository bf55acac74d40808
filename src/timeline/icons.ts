import { LabIcon } from '@jupyterlab/ui-components';

/** A curve over time. */
export const timelineIcon = new LabIcon({
  name: 'jupyter-dist-server:timeline',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" d="M3 3h2v16h16v2H3zM7 17V13l4-6 4 4 5-6v12z"/>
</svg>`
});

export const pauseIcon = new LabIcon({
  name: 'jupyter-dist-server:pause',
  svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
  <path class="jp-icon3" fill="#616161" d="M6 5h4v14H6zM14 5h4v14h-4z"/>
</svg>`
});
