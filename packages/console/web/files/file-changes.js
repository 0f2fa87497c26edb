/** Dispatches `change` after files were stored, moved or deleted here, so that listings load again. */
export const filesChanged = new EventTarget()

export const announceFilesChanged = () => filesChanged.dispatchEvent(new Event('change'))
