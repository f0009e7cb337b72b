import { useEffect, useState } from 'react';

import { ask, pageOf } from './server';

/** How long after the last key the server is asked (milliseconds). */
const PAUSE = 300;

function useSearch(kind, name, text) {
  const [found, setFound] = useState();
  const [fault, setFault] = useState();
  useEffect(() => {
    setFound();
    setFault();
    let isOver = false;
    const take = (set) => (value) => isOver || set(value);
    const timer = setTimeout(() => {
      ask('api/search', { [kind]: name, text }).then(take(setFound), take((error) => setFault(error.message)));
    }, PAUSE);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [kind, name, text]);
  return { found, fault };
}

function Hit({ hit, isOneFile }) {
  return (
    <li>
      <a href={pageOf('file', hit.file, hit.path)}>
        {!isOneFile && <strong>{hit.file}</strong>} {hit.path}
      </a>
      {hit.attribute && (
        <span>
          {' '}
          {hit.attribute} = {hit.value}
        </span>
      )}
    </li>
  );
}

/** What the server finds of a text, in a file or in all files below a folder. */
export function Hits({ kind, name, text }) {
  const { found, fault } = useSearch(kind, name, text);
  if (fault) return <p className="hits fault" role="alert">{fault}</p>;
  if (!found) return <p className="hits" role="status">Searching...</p>;
  return (
    <section className="hits" aria-label="What was found">
      {found.hits.length === 0 && <p role="status">Nothing has this in its name or its attributes.</p>}
      <ul>
        {found.hits.map((hit, n) => <Hit key={n} hit={hit} isOneFile={kind === 'file'} />)}
      </ul>
      {found.is_cut && <p>There may be more: only a part was searched.</p>}
      {found.unread > 0 && <p>{found.unread === 1 ? 'One file' : `${found.unread} files`} could not be read.</p>}
    </section>
  );
}

/** Where a text to search for is written. The key / leads to it, and Escape empties it. */
export function SearchBox({ wanted, onWanted }) {
  useEffect(() => {
    const toBox = (event) => {
      if (event.key !== '/' || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName)) return;
      event.preventDefault();
      document.querySelector('input.search').focus();
    };
    document.addEventListener('keydown', toBox);
    return () => document.removeEventListener('keydown', toBox);
  }, []);
  return (
    <input
      type="search"
      className="search"
      aria-label="Search in names and attributes"
      placeholder="Search ( / )"
      value={wanted}
      onChange={(event) => onWanted(event.target.value)}
      onKeyDown={(event) => event.key === 'Escape' && onWanted('')}
    />
  );
}
