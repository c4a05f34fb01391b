// The server's endpoints.

let key = '';

export class ServerError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

export function useKey(value) {
  key = value;
}

function messageOf(content, status) {
  const error = content?.error;
  return error?.message ?? error ?? `the server answered with status ${status}`;
}

async function request(path, body, signal) {
  const headers = { 'Content-Type': 'application/json' };
  if (key) headers.Authorization = `Bearer ${key}`;
  const options = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(path, { ...options, headers, signal });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new ServerError('the server does not answer', 0);
  }
  if (!response.ok) {
    const content = await response.json().catch(() => null);
    throw new ServerError(messageOf(content, response.status), response.status);
  }
  return response;
}

export async function call(path, body, signal) {
  return (await request(path, body, signal)).json();
}

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// The same request as a line for a terminal.
export function curl({ path, body }) {
  const address = new URL(path, location.href.split('#')[0]);
  const header = key ? ' -H "Authorization: Bearer $KEY"' : '';
  return `curl${header} ${quote(String(address))} -d ${quote(JSON.stringify(body))}`;
}

export function modelPath(model, task) {
  const name = model.id.split('/').map(encodeURIComponent).join('/');
  return `models/${name}${task === model.task ? '' : `/pipeline/${task}`}`;
}

// Server-sent events of a completion: calls onText with each new piece of text.
export async function stream({ path, body }, signal, onText) {
  const response = await request(path, { ...body, stream: true }, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let left = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (left + value).split('\n');
    left = lines.pop();
    for (const line of lines) {
      if (!line.startsWith('data:')) continue;
      const data = line.slice(5).trim();
      if (data === '[DONE]') return;
      const event = JSON.parse(data);
      if (event.error) throw new ServerError(messageOf(event, 200), 200);
      for (const choice of event.choices) onText(choice.text);
    }
  }
}
