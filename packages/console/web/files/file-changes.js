/** Dispatches `change` after files were stored, moved or deleted here, so that listings load again. */
export const filesChanged = new EventTarget()

/** Announces a change once the views have followed the address, so that nobody loads what has just moved away. */
export const announceFilesChanged = () =>
  setTimeout(() => filesChanged.dispatchEvent(new Event('change')))
