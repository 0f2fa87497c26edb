import type { Page } from 'playwright-core'

/** Drops files and folders of the disk onto an element, as a person drags them from a file manager. */
export async function dropOnto(page: Page, selector: string, paths: string[]) {
  const box = await page.locator(selector).boundingBox()
  if (!box) throw new Error(`${selector} is not visible`)
  const session = await page.context().newCDPSession(page)
  const event = {
    x: Math.round(box.x + box.width / 2),
    y: Math.round(box.y + box.height / 2),
    data: { items: [], files: paths, dragOperationsMask: 1 },
  }
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await session.send('Input.dispatchDragEvent', { type, ...event })
  }
  await session.detach()
}

/** Chooses files in the browser's dialog. */
export async function chooseFiles(page: Page, files: string[]) {
  const [chooser] = await Promise.all([
    page.waitForEvent('filechooser'),
    page.getByRole('button', { name: 'Upload files' }).first().click(),
  ])
  await chooser.setFiles(files)
}
