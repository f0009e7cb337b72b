import { useEffect, useRef, useState } from 'react';

import { base } from './server';

/** The shortest time from one fetch to the next (milliseconds); a slow one is followed by a pause of half its time. */
const MIN_INTERVAL = 100;
/** How long rates are looked back (milliseconds). */
const RATE_TIME = 3000;

/** The largest growth of a dataset in a second, as text. */
class Rates {
  #seen = new Map();

  add(objects) {
    const now = performance.now();
    for (const { path, shape } of objects) {
      if (!shape?.length) continue;
      const known = this.#seen.get(path) ?? [];
      known.push([now, shape[0]]);
      while (known.length > 2 && known[1][0] < now - RATE_TIME) known.shift();
      this.#seen.set(path, known);
    }
  }

  text() {
    const oldest = performance.now() - 2 * RATE_TIME;
    let best = 0;
    for (const known of this.#seen.values()) {
      const [[begin, first], [end, last]] = [known[0], known[known.length - 1]];
      if (end > begin && end > oldest) best = Math.max(best, ((last - first) * 1000) / (end - begin));
    }
    return best > 0 ? `${best < 10 ? best.toFixed(1) : Math.round(best).toLocaleString()} rows/s` : '';
  }
}

/** What the server tells of a file: the writer, and a number that grows when something is to be fetched. */
export function useEvents(file) {
  const [told, setTold] = useState({ writer: undefined, fault: undefined, rate: '', isConnected: false });
  const [round, setRound] = useState(0);
  const state = useRef({ isWanted: false, isBusy: false, begun: 0, rates: new Rates(), isFirst: true });

  const start = () => {
    const now = state.current;
    if (now.isBusy || !now.isWanted) return;
    now.isBusy = true;
    now.isWanted = false;
    now.begun = performance.now();
    setRound((round) => round + 1);
  };

  /** A fetch is over. */
  const done = () => {
    const now = state.current;
    const took = performance.now() - now.begun;
    const pause = Math.max(MIN_INTERVAL - took, took / 2);
    setTimeout(() => {
      now.isBusy = false;
      start();
    }, pause);
  };

  useEffect(() => {
    let events;
    let timer;
    const connect = () => {
      events = new EventSource(`${base}/events?${new URLSearchParams({ file })}`);
      events.onopen = () => setTold((told) => ({ ...told, isConnected: true }));
      events.onmessage = ({ data }) => {
        const message = JSON.parse(data);
        const now = state.current;
        now.rates.add(message.objects);
        setTold({ writer: message.writer, fault: message.fault, rate: now.rates.text(), isConnected: true });
        // The first message says what the page is about to fetch by itself.
        now.isWanted ||= !now.isFirst;
        now.isFirst = false;
        start();
      };
      events.onerror = () => {
        setTold((told) => ({ ...told, isConnected: false }));
        // The browser tries again by itself, unless the answer was no stream of events.
        if (events.readyState === EventSource.CLOSED) timer = setTimeout(connect, 2000);
      };
    };
    connect();
    const rate = setInterval(() => {
      const text = state.current.rates.text();
      setTold((told) => (told.rate === text ? told : { ...told, rate: text }));
    }, 1000);
    return () => {
      clearTimeout(timer);
      clearInterval(rate);
      events.close();
    };
  }, [file]);
  return { told, round, done };
}
