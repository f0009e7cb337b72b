/**
 * Moves the sliders that choose a frame to the newest one, as the key End does. h5web has no other way to set them from
 * outside.
 */
export function showNewest(root) {
  for (const thumb of root.querySelectorAll('[role="slider"][aria-orientation="vertical"][aria-valuemax]')) {
    if (thumb.getAttribute('aria-valuenow') === thumb.getAttribute('aria-valuemax')) continue;
    thumb.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
    thumb.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', code: 'End', bubbles: true, cancelable: true }));
    thumb.dispatchEvent(new FocusEvent('focusout', { bubbles: true }));
  }
}
