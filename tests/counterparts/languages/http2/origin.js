// An origin over HTTP/2 without TLS: node origin.js. Prints its port.
// `/large` is 64 MB, `/events` has small events without end, `/whole` 300,000 bytes, and the rest `ok`.
const http2 = require('http2');

const piece = Buffer.alloc(65_536, 'x');

function large(stream) {
  let left = 1024;
  const more = () => {
    while (left > 0 && !stream.destroyed) {
      left -= 1;
      if (!stream.write(piece)) return stream.once('drain', more);
    }
    stream.end();
  };
  more();
}

function events(stream) {
  const timer = setInterval(() => {
    for (let nth = 0; nth < 200 && !stream.writableNeedDrain; nth += 1) stream.write('data: an event of some bytes\n\n');
  }, 2);
  stream.on('close', () => clearInterval(timer));
}

const server = http2.createServer();
server.on('stream', (stream, fields) => {
  stream.on('error', () => {});
  stream.resume();
  stream.respond({ ':status': 200 });
  if (fields[':path'] === '/large') large(stream);
  else if (fields[':path'] === '/events') events(stream);
  else if (fields[':path'] === '/whole') stream.end('y'.repeat(300_000));
  else stream.end('ok');
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
