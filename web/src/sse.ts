/** Server-sent events from a fetched body. EventSource cannot send a key. */
export interface Frame {
  event: string;
  id: string | null;
  data: string;
}

export class Frames {
  private rest = '';

  /** The events that this piece of text completes. */
  take(text: string): Frame[] {
    const blocks = (this.rest + text).split('\n\n');
    this.rest = blocks.pop() as string;
    return blocks.map(frame).filter((found) => found !== null);
  }
}

function frame(block: string): Frame | null {
  let [event, id, data] = ['message', null as string | null, ''];
  for (const line of block.split('\n')) {
    const colon = line.indexOf(':');
    const [name, value] = [line.slice(0, colon), line.slice(colon + 1).replace(/^ /, '')];
    if (name === 'event') event = value;
    else if (name === 'id') id = value;
    else if (name === 'data') data += value;
  }
  return data === '' ? null : { event, id, data };
}

export async function* frames(body: ReadableStream<Uint8Array>): AsyncGenerator<Frame> {
  const [reader, text, found] = [body.getReader(), new TextDecoder(), new Frames()];
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield* found.take(text.decode(value, { stream: true }));
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
