import { useEffect, useState } from 'react';

import { Hits, SearchBox } from './search';
import { ask, pageOf, writerText } from './server';

const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

function sizeText(bytes) {
  if (bytes == null) return '';
  const power = Math.min(units.length - 1, Math.floor(Math.log2(Math.max(bytes, 1)) / 10));
  return power === 0 ? `${bytes} bytes` : `${(bytes / 1024 ** power).toFixed(1)} ${units[power]}`;
}

function Crumbs({ folder }) {
  const names = folder.split('/').filter(Boolean);
  return (
    <nav aria-label="Folders">
      <a href={pageOf('folder', '')}>h5live</a>
      {names.map((name, n) => (
        <span key={n}>
          {' / '}
          <a href={pageOf('folder', names.slice(0, n + 1).join('/'))}>{name}</a>
        </span>
      ))}
    </nav>
  );
}

function Row({ entry }) {
  const isFolder = entry.kind === 'folder';
  return (
    <tr>
      <td>
        <a href={pageOf(isFolder ? 'folder' : 'file', entry.path)}>{isFolder ? `${entry.name}/` : entry.name}</a>
      </td>
      <td className="number">{sizeText(entry.size)}</td>
      <td>{entry.modified ? new Date(entry.modified).toLocaleString() : ''}</td>
      <td className={`writer ${entry.writer?.state ?? ''}`}>
        {entry.writer && entry.writer.state !== 'closed' ? writerText(entry.writer) : ''}
      </td>
    </tr>
  );
}

/** The files of a folder. */
export function FileList({ folder }) {
  const [list, setList] = useState();
  const [fault, setFault] = useState();
  const [wanted, setWanted] = useState('');
  useEffect(() => {
    document.title = folder ? `${folder} - h5live` : 'h5live';
    let isOver = false;
    const look = async () => {
      try {
        const found = await ask('api/files', { folder });
        if (isOver) return;
        setList(found);
        setFault();
      } catch (error) {
        if (!isOver) setFault(error.message);
      }
    };
    look();
    // New files, and who writes them.
    const timer = setInterval(() => document.visibilityState === 'visible' && look(), 3000);
    return () => {
      isOver = true;
      clearInterval(timer);
    };
  }, [folder]);
  // A server of one file shows it at once.
  const only = !folder && list?.entries.length === 1 && list.entries[0].kind !== 'folder' ? list.entries[0] : undefined;
  const isOnly = only && !sessionStorage.getItem('h5live-list');
  useEffect(() => {
    if (isOnly) {
      sessionStorage.setItem('h5live-list', 'seen');
      location.replace(pageOf('file', only.path));
    }
  }, [isOnly]);
  const shown = list?.entries.filter((entry) => entry.name.toLowerCase().includes(wanted.trim().toLowerCase()));
  return (
    <main className="list">
      <header>
        <Crumbs folder={folder} />
        <SearchBox wanted={wanted} onWanted={setWanted} />
      </header>
      {fault && <p className="fault" role="alert">{fault}</p>}
      {!list && !fault && <p>Looking...</p>}
      {list?.entries.length === 0 && <p>There are no HDF5 files in this folder.</p>}
      {shown?.length > 0 && (
        <table>
          <thead>
            <tr><th>Name</th><th className="number">Size</th><th>Changed</th><th>Writer</th></tr>
          </thead>
          <tbody>{shown.map((entry) => <Row key={entry.path} entry={entry} />)}</tbody>
        </table>
      )}
      {wanted.trim() && <Hits kind="folder" name={folder} text={wanted.trim()} />}
      {list?.is_cut && <p>There are more entries than are shown.</p>}
      <footer><a href="assets/licenses.txt">Licences of what this page is made of</a></footer>
    </main>
  );
}
