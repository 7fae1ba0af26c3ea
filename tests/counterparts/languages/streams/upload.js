// Uploads a file COUNT times over HTTP/2, each time on a new connection: node upload.js URL FILE COUNT [expect]
// Prints a line for each: the status, and whether the stream closed.
const fs = require('fs');
const http2 = require('http2');

const [url, file, count, expect] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const body = fs.readFileSync(file);

function upload() {
  return new Promise((resolve) => {
    const session = http2.connect(origin, { rejectUnauthorized: false });
    const fields = { ':path': pathname, ':method': 'POST', 'content-length': body.length };
    if (expect) fields.expect = '100-continue';
    const stream = session.request(fields);
    let told = 'no answer';
    const end = (how) => {
      clearTimeout(timer);
      session.destroy();
      resolve(`${told} ${how}`);
    };
    const timer = setTimeout(() => end('open'), 60_000);
    stream.on('response', (answer) => { told = answer[':status']; });
    stream.on('error', (error) => { told = error.code; });
    stream.on('close', () => end('closed'));
    session.on('error', (error) => { told = error.code; end('closed'); });
    stream.resume();
    if (expect) stream.on('continue', () => stream.end(body));
    else stream.end(body);
  });
}

(async () => {
  for (let nth = 0; nth < Number(count); nth += 1) console.log(await upload());
})();
