// Runs Perfetto's trace processor as the worker of its page does. Requests come on stdin, answers
// go to stdout, each behind its length in 4 bytes.
import fs from 'node:fs';
import path from 'node:path';

const read = name => fs.readFileSync(path.join(process.argv[2], name));

/** How the worker loads its WebAssembly. */
class Request {
  open(method, name) {
    this._name = name;
  }

  send() {
    this.response = Uint8Array.from(read(path.basename(this._name))).buffer;
  }
}

const worker = { location: { href: 'http://localhost/' } };
const globals = {
  self: worker,
  WorkerGlobalScope: Object,
  XMLHttpRequest: Request,
  console: new console.Console(process.stderr),
  process: undefined // it is not built for Node.js
};
const code = read('engine_bundle.js').toString();
new Function(...Object.keys(globals), code)(...Object.values(globals));
const answers = [];
const port = { postMessage: answer => answers.push(answer) };
worker.onmessage({ data: port });
await new Promise(resolve => setTimeout(resolve)); // it is ready then

let waiting = Buffer.alloc(0);
for await (const chunk of process.stdin) {
  waiting = Buffer.concat([waiting, chunk]);
  while (waiting.length >= 4 && waiting.length >= 4 + waiting.readUInt32LE()) {
    const end = 4 + waiting.readUInt32LE();
    port.onmessage({ data: Uint8Array.from(waiting.subarray(4, end)) });
    waiting = waiting.subarray(end);
    const answer = Buffer.concat(answers.splice(0));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(answer.length);
    process.stdout.write(Buffer.concat([length, answer]));
  }
}
