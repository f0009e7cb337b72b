/** Lets React take up what an event has changed. */
const nextTask = () => new Promise((resolve) => setTimeout(resolve));

let isBusy = false;

/**
 * Moves the sliders that choose a frame to the newest one, as the key End does. h5web has no other way to set them from
 * outside. A slider takes keys while it has the focus, which is given back.
 */
export async function showNewest(root) {
  if (isBusy) return;
  isBusy = true;
  try {
    for (const thumb of root.querySelectorAll('[role="slider"][aria-orientation="vertical"][aria-valuemax]')) {
      if (thumb.getAttribute('aria-valuenow') === thumb.getAttribute('aria-valuemax')) continue;
      const focused = document.activeElement;
      const key = { key: 'End', code: 'End', bubbles: true, cancelable: true };
      thumb.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
      await nextTask();
      thumb.dispatchEvent(new KeyboardEvent('keydown', key));
      await nextTask();
      thumb.dispatchEvent(new KeyboardEvent('keyup', key));
      thumb.dispatchEvent(new FocusEvent('focusout', { bubbles: true }));
      if (focused !== thumb) focused?.focus?.({ preventScroll: true });
    }
  } finally {
    isBusy = false;
  }
}
