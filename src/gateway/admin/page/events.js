// Server-sent events of a response. EventSource cannot send a token.

/** Calls `take` with the name and the data of each event, until the response ends. */
export async function readEvents(response, take) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let pieces = []; // of the last line, which has no end yet
  let event = { name: "message", data: [] };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = value.split("\n");
    for (const [i, text] of lines.entries()) {
      pieces.push(text);
      if (i === lines.length - 1) break;
      const line = pieces.join("");
      pieces = [];
      if (line === "") {
        if (event.data.length) take(event.name, event.data.join("\n"));
        event = { name: "message", data: [] };
        continue;
      }
      const [, field, content] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (field === "event") event.name = content;
      if (field === "data") event.data.push(content);
    }
  }
}
