import { LabIcon } from '@jupyterlab/ui-components';

// A picture of its own knows no variables: these are the colours of ranks 0 to 3.
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 52 52" width="52" height="52">
  <path fill="none" stroke="#9e9e9e" stroke-width="1.5" d="M6 6h17v17H6zM29 6h17v17H29zM6 29h17v17H6zM29 29h17v17H29z"/>
  <path fill="#0072b2" d="M5 5h6v19H5z"/>
  <path fill="#e69f00" d="M28 5h6v19h-6z"/>
  <path fill="#009e73" d="M5 28h6v19H5z"/>
  <path fill="#cc79a7" d="M28 28h6v19h-6z"/>
</svg>`;

/** Four ranks in their colours. */
export const launcherIcon = new LabIcon({
  name: 'jupyter-dist-server:launcher',
  svgstr: SVG
});

/** The same where the launcher shows the logo of a kernel. */
export const LOGO_URL = `data:image/svg+xml,${encodeURIComponent(SVG)}`;
