import type { Page } from '@playwright/test';

/** What our timeline is compared with, drawn at every update in the same page. */
export type Floor = 'frame' | 'canvas' | 'uplot';

declare global {
  interface Window {
    jupyterDistFloor?: { node: HTMLElement; step: () => void };
    uPlot: new (
      options: object,
      data: object,
      node: HTMLElement
    ) => {
      setData(data: object): void;
    };
  }
}

interface ISize {
  rows: number;
  values: number;
  width: number;
  height: number;
}

/** As many curves and values as ours, and as large. */
const SIZE: ISize = { rows: 16, values: 900, width: 1120, height: 69 };

/**
 * Put one of the floors above the page.
 *
 * `frame`: one pixel of a canvas, so that the browser has to show something. `canvas`: a canvas a row, cleared, and a line of so many values stroked. `uplot`: a bare uPlot a row,
 * without axes and legend.
 */
export async function showFloor(page: Page, floor: Floor): Promise<void> {
  if (floor === 'uplot') {
    await page.addScriptTag({
      path: require.resolve('uplot/dist/uPlot.iife.min.js')
    });
  }
  await page.evaluate(
    ([floor, { rows, values, width, height }]) => {
      const node = document.body.appendChild(document.createElement('div'));
      node.style.cssText =
        'position: absolute; z-index: 99999; top: 90px; left: 400px; background: white';
      const times = Array.from({ length: values }, (_, index) => index);
      let count = 0;
      const value = (row: number, time: number) =>
        60 +
        25 * Math.sin((time + count) / 9 + row) +
        12 * Math.sin((time + count) * 1.7 + row);
      const curves = floor === 'frame' ? 1 : rows;
      const draw = Array.from({ length: curves }, (_, row) => {
        const data = () => [times, times.map(time => value(row, time))];
        if (floor === 'uplot') {
          const plot = new window.uPlot(
            {
              width,
              height,
              legend: { show: false },
              axes: [{ show: false }, { show: false }],
              scales: { x: { time: false }, y: { range: [0, 100] } },
              series: [{}, { stroke: '#0072b2', fill: '#0072b233' }]
            },
            data(),
            node
          );
          return () => plot.setData(data());
        }
        const canvas = node.appendChild(document.createElement('canvas'));
        canvas.style.display = 'block';
        const ctx = canvas.getContext('2d')!;
        if (floor === 'frame') {
          [canvas.width, canvas.height] = [1, 1];
          return () => {
            ctx.fillStyle = count % 2 ? 'black' : 'white';
            ctx.fillRect(0, 0, 1, 1);
          };
        }
        [canvas.width, canvas.height] = [width, height];
        return () => {
          ctx.clearRect(0, 0, width, height);
          ctx.strokeStyle = '#0072b2';
          ctx.beginPath();
          for (const time of times) {
            const y = height * (1 - value(row, time) / 100);
            ctx.lineTo((time / values) * width, y);
          }
          ctx.stroke();
        };
      });
      const step = () => {
        count += 1;
        requestAnimationFrame(() => draw.forEach(one => one()));
      };
      window.jupyterDistFloor = { node, step };
    },
    [floor, SIZE] as const
  );
}

export async function stepFloor(page: Page, updates: number, pause: number) {
  await page.evaluate(
    async ([updates, pause]) => {
      for (let count = 0; count < updates; count++) {
        window.jupyterDistFloor?.step();
        await new Promise(resolve => setTimeout(resolve, pause));
      }
    },
    [updates, pause] as const
  );
}

export async function hideFloor(page: Page): Promise<void> {
  await page.evaluate(() => window.jupyterDistFloor?.node.remove());
}
