import { useDataContext } from '@h5web/app';
import { useEffect } from 'react';

/**
 * What the page has on view. h5web keeps in stores, for ever, what it has fetched. Here each key is noted that a rendering
 * asks a store for. New data is fetched by the stores of a provider that nobody sees, and put into the stores of the one
 * that is seen when all of it is there. So nothing is ever missing, and no loader is shown.
 */
export class View {
  #seen = { entitiesStore: new Map(), valuesStore: new Map(), attrValuesStore: new Map() };
  stores;
  /** When data was put on view, the last two times: each time, everything on view is drawn again. */
  #shown = [0, 0];
  /** The lists of dimensions of datasets that h5web has, by paths. */
  #dims = new Map();

  /** Notes from now on what is taken from these stores. */
  attach(context) {
    if (this.stores?.entitiesStore === context.entitiesStore) return;
    this.stores = {};
    for (const kind of Object.keys(this.#seen)) {
      const store = context[kind];
      const { get } = store;
      this.#seen[kind].clear();
      this.stores[kind] = store;
      store.get = (key) => {
        this.#seen[kind].set(View.#name(kind, key), { key, at: performance.now() });
        const value = get(key);
        if (kind === 'entitiesStore') this.#noteDims(key, value.shape?.dims);
        return value;
      };
    }
  }

  static #name(kind, key) {
    switch (kind) {
      case 'entitiesStore':
        return key;
      case 'valuesStore':
        return `${key.dataset.path}\n${key.selection ?? ''}`;
      default:
        return key.path;
    }
  }

  #noteDims(path, dims) {
    if (!dims) return;
    const known = this.#dims.get(path) ?? [];
    if (known.at(-1)?.deref() === dims) return;
    this.#dims.set(path, [...known.filter((one) => one.deref()), new WeakRef(dims)]);
  }

  /**
   * Tells h5web's sliders of a dataset that has grown. They are kept with the dimensions for which they were set, and begin
   * anew for others. So those dimensions grow, too. What draws takes new dimensions by their new list.
   */
  grow({ path, shape }) {
    for (const one of this.#dims.get(path) ?? []) {
      const dims = one.deref();
      if (!dims || dims === shape?.dims) continue;
      const isGrown = shape?.dims?.length === dims.length && dims.every((dim, n) => dim <= shape.dims[n]);
      if (!isGrown) return void this.#dims.delete(path);
      shape.dims.forEach((dim, n) => {
        dims[n] = dim;
      });
    }
  }

  /** Data is about to be put on view. */
  show() {
    this.#shown = [this.#shown[1], performance.now()];
  }

  /** The keys on view of one kind of store. What is no longer on view is forgotten, so that it is fetched when it is again. */
  keys(kind) {
    for (const [name, { key, at }] of this.#seen[kind]) {
      if (at >= this.#shown[0]) continue;
      this.#seen[kind].delete(name);
      this.stores[kind].evict(key);
    }
    return [...this.#seen[kind].values()].map(({ key }) => key);
  }
}

/** Part of the provider that is seen. */
export function Attach({ view }) {
  view.attach(useDataContext());
  return null;
}

async function fetchOne(store, key) {
  for (;;) {
    try {
      return store.get(key);
    } catch (thrown) {
      if (!(thrown instanceof Promise)) throw thrown;
      await thrown;
    }
  }
}

/** The selection of the newest frame: single indices are the last ones of their dimensions. */
function newestOf(selection, dims) {
  const parts = selection.split(',');
  return parts.map((part, n) => (/^\d+$/.test(part) && dims[n] > 0 ? dims[n] - 1 : part)).join(',');
}

/** Fetches what is on view, and the newest frames if they are to be. Returns what puts it on view, all at once. */
async function fetchView(view, fresh, isNewest) {
  const seen = view.stores;
  const entities = new Map();
  for (const path of view.keys('entitiesStore')) entities.set(path, await fetchOne(fresh.entitiesStore, path));
  // A dataset that is on view is described by its group, too.
  const children = [...entities.values()].flatMap((entity) => entity.children ?? []);
  const described = new Map([...children.map((child) => [child.path, child]), ...entities]);
  const wanted = view.keys('valuesStore').flatMap(({ dataset: known, selection }) => {
    const dataset = described.get(known.path) ?? known;
    const newest = isNewest && selection ? newestOf(selection, dataset.shape?.dims ?? []) : selection;
    return newest === selection ? [{ dataset, selection }] : [{ dataset, selection }, { dataset, selection: newest }];
  });
  const values = await Promise.all(wanted.map(async (key) => [key, await fetchOne(fresh.valuesStore, key)]));
  const attributes = await Promise.all(
    view.keys('attrValuesStore').map(async (key) => {
      const entity = described.get(key.path) ?? key;
      return [entity, await fetchOne(fresh.attrValuesStore, entity)];
    }),
  );
  return () => {
    view.show();
    const put = (store, key, value) => {
      store.evict(key);
      store.preset(key, value);
    };
    for (const entity of described.values()) view.grow(entity);
    for (const child of children) if (child.kind !== 'group') put(seen.entitiesStore, child.path, child);
    for (const [path, entity] of entities) put(seen.entitiesStore, path, entity);
    for (const [key, value] of values) put(seen.valuesStore, key, value);
    for (const [key, value] of attributes) put(seen.attrValuesStore, key, value);
  };
}

/** Part of the provider that nobody sees, which is made anew for each round. */
export function Fetch({ round, view, isNewest, onDone, onFault }) {
  const fresh = useDataContext();
  useEffect(() => {
    if (round === 0 || !view.stores) return undefined;
    let isOver = false;
    fetchView(view, fresh, isNewest).then(
      (show) => {
        if (isOver) return;
        show();
        onDone(round);
      },
      (error) => isOver || onFault(error),
    );
    return () => {
      isOver = true;
    };
  }, [round]);
  return null;
}
