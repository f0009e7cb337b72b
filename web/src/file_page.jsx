import { App, H5GroveProvider } from '@h5web/app';
import { memo, useEffect, useRef, useState } from 'react';

import { useEvents } from './events';
import { Attach, Fetch, View } from './live_refresh';
import { showNewest } from './newest';
import { Hits, SearchBox } from './search';
import { ask, base, pageOf, writerText } from './server';

function Status({ file, told, isNewest, onNewest, wanted, onWanted }) {
  const state = told.isConnected ? (told.writer?.state ?? 'waiting') : 'lost';
  const folder = file.split('/').slice(0, -1).join('/');
  return (
    <header className="status">
      <a className="home" href={pageOf('folder', folder)} title="All files">h5live</a>
      <strong title={file}>{file.split('/').pop()}</strong>
      <span className={`writer ${state}`} role="status">
        <i aria-hidden="true" />
        {told.isConnected ? writerText(told.writer) : 'the server does not answer; trying again'}
        {state === 'writing' && told.rate && ` - ${told.rate}`}
      </span>
      <label title="Keep the sliders at the newest frame">
        <input type="checkbox" checked={isNewest} onChange={(event) => onNewest(event.target.checked)} />
        newest frame
      </label>
      <SearchBox wanted={wanted} onWanted={onWanted} />
    </header>
  );
}

/** What may be done about a writer that died, and other sentences. */
function Notice({ file, told, fault }) {
  if (told.writer?.state === 'died') {
    return (
      <p className="notice" role="alert">
        The writer of this file has died. Everything that it flushed is here. <code>h5live repair {file}</code> lets every
        program open the file.
      </p>
    );
  }
  if (told.writer?.state === 'gone') return <p className="notice" role="alert">This file is no longer there. Its last state is shown.</p>;
  if (fault ?? told.fault) return <p className="notice" role="alert">{fault ?? told.fault}</p>;
  return null;
}

/**
 * h5web, drawn anew when a round is on view (`drawn`), and not for each event: a drawing takes longer than what else is to be
 * done.
 */
const Viewer = memo(function Viewer({ file, path, view }) {
  return (
    <H5GroveProvider url={base} filepath={file}>
      <Attach view={view} />
      <App initialPath={path} propagateErrors={false} />
    </H5GroveProvider>
  );
});

/** A file, drawn as it is recorded. */
export function FilePage({ file, path }) {
  const { told, round, done } = useEvents(file);
  const view = useRef();
  view.current ??= new View();
  const shown = useRef(null);
  const [fault, setFault] = useState();
  const [isThere, setThere] = useState(false);
  const [remake, setRemake] = useState(0); // another one throws away everything that is shown
  const [drawn, setDrawn] = useState(0); // the last round that is on view
  const [isNewest, setNewest] = useState(false);
  const [wanted, setWanted] = useState('');

  useEffect(() => {
    document.title = `${file.split('/').pop()} - h5live`;
  }, [file]);

  // Whether there is anything to show; asked again after each change of the file until there is.
  useEffect(() => {
    if (isThere) return;
    ask('meta', { file, path: '/' }).then(
      () => {
        setThere(true);
        setFault();
      },
      (error) => setFault(error.message),
    );
  }, [file, isThere, round, told.isConnected]);

  useEffect(() => {
    if (!isThere && round > 0) done();
  }, [isThere, round]);

  useEffect(() => {
    if (isNewest && shown.current) showNewest(shown.current);
  });

  const onDone = (round) => {
    window.h5liveRound = round;
    setFault();
    setDrawn(round);
    done();
  };
  const onFault = (error) => {
    // What is on view has gone, as when another file has taken the place of this one.
    if (/not a valid path|Cannot resolve/.test(error.message)) {
      view.current = new View();
      setRemake((remake) => remake + 1);
    } else {
      setFault(`Not refreshed: ${error.message}`);
    }
    done();
  };

  return (
    <div className="page">
      <Status
        file={file} told={told} isNewest={isNewest} onNewest={setNewest} wanted={wanted} onWanted={setWanted}
      />
      {wanted.trim() && <Hits kind="file" name={file} text={wanted.trim()} />}
      <Notice file={file} told={told} fault={fault} />
      {isThere && (
        <div className="viewer" ref={shown}>
          <Viewer key={remake} file={file} path={path} view={view.current} drawn={drawn} />
          <H5GroveProvider url={base} filepath={file} resetKeys={[round]}>
            <Fetch round={round} view={view.current} isNewest={isNewest} onDone={onDone} onFault={onFault} />
          </H5GroveProvider>
        </div>
      )}
    </div>
  );
}
