/** Where the server is: beside this page. */
export const base = new URL('.', location.href).href.replace(/\/$/, '');

/** The address of the page of a file, or of an object in it, or of a folder. */
export function pageOf(kind, name, path) {
  return `?${new URLSearchParams(path ? { [kind]: name, path } : { [kind]: name })}`;
}

/** What the server says, or an error with its sentence. */
export async function ask(route, parameters) {
  let answer;
  try {
    answer = await fetch(`${base}/${route}?${new URLSearchParams(parameters)}`);
  } catch {
    throw new Error('The server does not answer. Is it still running?');
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Error(body.message ?? `The server answers with status ${answer.status}.`);
  return body;
}

/** A sentence about who writes a file. */
export function writerText(writer) {
  switch (writer?.state) {
    case 'writing':
      return writer.processes?.length ? `being written by ${writer.processes.join(' and ')}` : 'being written';
    case 'died':
      return 'its writer died; what it flushed is here';
    case 'unknown':
      return 'marked as being written';
    case 'gone':
      return 'no longer there';
    case 'closed':
      return 'closed';
    default:
      return '';
  }
}
