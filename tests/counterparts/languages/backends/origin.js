// An origin that tells what it reads: the address to listen on is the argument.
const http = require("http");
const querystring = require("querystring");

// As the package cookie does it, which Express uses.
function cookie(line, name) {
  for (const piece of line.split(";")) {
    const at = piece.indexOf("=");
    if (at < 0 || piece.slice(0, at).trim() !== name) continue;
    const value = piece.slice(at + 1).trim();
    const plain = value[0] === '"' ? value.slice(1, -1) : value;
    try {
      return decodeURIComponent(plain);
    } catch {
      return plain;
    }
  }
  return "";
}

const [host, port] = process.argv[2].split(":");
http
  .createServer((request, response) => {
    const query = request.url.split("?").slice(1).join("?");
    const told = {
      method: request.method,
      field: request.headers["x-api-key"] ?? "",
      client: request.headers["x-forwarded-for"] ?? "",
      host: request.headers.host ?? "",
      cookie: cookie(request.headers.cookie ?? "", "my_key"),
      argument: [querystring.parse(query).my_key ?? ""].flat().pop(),
    };
    response.end(Object.entries(told).map(([name, value]) => `${name}=${value}\n`).join(""));
  })
  .listen(Number(port), host);
