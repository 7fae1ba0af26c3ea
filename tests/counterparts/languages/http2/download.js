// Downloads URL COUNT times over HTTP/2 without TLS, on one connection: node download.js URL COUNT
// Prints the status and the number of bytes of each.
const http2 = require('http2');

const [url, count] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const session = http2.connect(origin);

function download() {
  return new Promise((resolve) => {
    const stream = session.request({ ':path': pathname });
    let [told, bytes] = ['no answer', 0];
    stream.on('response', (answer) => { told = answer[':status']; });
    stream.on('error', (error) => { told = error.code; });
    stream.on('data', (piece) => { bytes += piece.length; });
    stream.on('close', () => resolve(`${told} ${bytes}`));
  });
}

(async () => {
  for (let nth = 0; nth < Number(count); nth += 1) console.log(await download());
  session.close();
})();
