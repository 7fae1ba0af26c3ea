// Uploads SIZE bytes COUNT times at once over one connection of HTTP/2: node parallel.js URL COUNT SIZE
// Prints a line for each: the status, or the error.
const http2 = require('http2');

const [url, count, size] = process.argv.slice(2);
const { origin, pathname } = new URL(url);
const body = Buffer.alloc(Number(size), 'x');
// By default, a session keeps no more than 10 MB of what it has to send.
const session = http2.connect(origin, { rejectUnauthorized: false, maxSessionMemory: 100 });
session.on('error', (error) => console.log(error.code));

function upload() {
  return new Promise((resolve) => {
    const stream = session.request({ ':path': pathname, ':method': 'POST' });
    let told = 'no answer';
    stream.on('response', (answer) => { told = answer[':status']; });
    stream.on('error', (error) => { told = error.message; });
    stream.on('close', () => resolve(told));
    stream.resume();
    stream.end(body);
  });
}

Promise.all(Array.from({ length: Number(count) }, upload)).then((told) => {
  for (const it of told) console.log(it);
  session.destroy();
});
