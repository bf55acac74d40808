import type { Page, WebSocket } from '@playwright/test';
import { createHash } from 'crypto';
import { createServer } from 'http';
import type { AddressInfo } from 'net';
import type { Duplex } from 'stream';

/** What the protocol of WebSockets has a server answer with. */
const HANDSHAKE = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

declare global {
  interface Window {
    /** Where the page gets the answers to its cells from, instead of the kernel. */
    jupyterDistTape?: string;
  }
}

/**
 * The messages of a kernel while a cell runs, which can be sent once more, at the intervals at
 * which they came, in answer to another cell: then the page has a core to itself.
 *
 * Measured is all that the page does with them: they come through a real WebSocket from this
 * process, into JupyterLab's connection to the kernel. Not on the tape is our own stream, which says
 * that ranks are busy; nor can it tell how the page fares when others take its core away.
 */
export class Tape {
  constructor(private readonly _page: Page) {}

  /** Before the page loads. */
  async install(): Promise<void> {
    this._page.on('websocket', socket => this._listen(socket));
    await this._page.addInitScript(() => {
      const Native = window.WebSocket;
      window.WebSocket = class extends Native {
        send(data: string | ArrayBuffer): void {
          const text =
            data instanceof ArrayBuffer
              ? new TextDecoder().decode(data)
              : `${data}`;
          if (!window.jupyterDistTape || !text.includes('"execute_request"')) {
            super.send(data);
            return;
          }
          const id = /"msg_id":"([^"]+)"/.exec(text)![1];
          const player = new Native(`${window.jupyterDistTape}/${id}`);
          player.binaryType = 'arraybuffer';
          player.onmessage = ({ data }) =>
            this.dispatchEvent(new MessageEvent('message', { data }));
        }
      };
    });
  }

  /** From now on the page's cells are answered from the tape. */
  async play(): Promise<void> {
    const server = createServer();
    server.on('upgrade', ({ url = '', headers }, socket) => {
      const key = `${headers['sec-websocket-key']}${HANDSHAKE}`;
      const accept = createHash('sha1').update(key).digest('base64');
      socket.write(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n' +
          `Connection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
      );
      this._send(socket, url.slice(1));
    });
    await new Promise<void>(resolve =>
      server.listen(0, '127.0.0.1', () => resolve())
    );
    server.unref();
    const { port } = server.address() as AddressInfo;
    await this._page.evaluate(url => {
      window.jupyterDistTape = url;
    }, `ws://127.0.0.1:${port}`);
  }

  private _listen(socket: WebSocket): void {
    if (!socket.url().includes('/channels')) {
      return;
    }
    socket.on('framesent', ({ payload }) => {
      const text = payload.toString();
      if (text.includes('"execute_request"')) {
        this._request = /"msg_id":"([^"]+)"/.exec(text)![1];
        this._heard = [];
      }
    });
    socket.on('framereceived', ({ payload }) => {
      // Byte for byte, as there are lengths in it.
      const text = payload.toString('latin1');
      if (text.includes(this._request)) {
        this._heard.push({ time: performance.now(), text });
      }
    });
  }

  /** Send what was heard, as answers to another request. */
  private _send(socket: Duplex, request: string): void {
    const begin = this._heard[0].time;
    for (const { time, text } of this._heard) {
      // A display that is known would be drawn in its first cell, too. All stays as long as it was.
      const answer = text
        .replaceAll(this._request, request)
        .replaceAll(/(?<="display_id": ")./g, `${this._plays}`);
      const frame = framed(Buffer.from(answer, 'latin1'));
      setTimeout(() => socket.write(frame), time - begin);
    }
    this._plays += 1;
  }

  private _request = '';
  private _heard: { time: number; text: string }[] = [];
  private _plays = 0;
}

/** A message as a server sends it. */
function framed(data: Buffer): Buffer {
  const head = Buffer.alloc(10);
  const [binary, two, eight] = [0x82, 126, 127];
  head.writeUInt8(binary);
  if (data.length < two) {
    head.writeUInt8(data.length, 1);
    return Buffer.concat([head.subarray(0, 2), data]);
  }
  if (data.length < 2 ** 16) {
    head.writeUInt8(two, 1);
    head.writeUInt16BE(data.length, 2);
    return Buffer.concat([head.subarray(0, 4), data]);
  }
  head.writeUInt8(eight, 1);
  head.writeBigUInt64BE(BigInt(data.length), 2);
  return Buffer.concat([head, data]);
}
