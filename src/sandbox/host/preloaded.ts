/**
 * Cells with much of Python loaded (driver.ts). Nothing is spent on them before one is first of use, and nobody waits: until
 * they are ready and the attacks were made on them, and whenever none is to be had at once, cells are made without.
 */
import type { Cell, CellShape, Log, PreloadedDriver } from '../driver.ts'

export interface PreloadedCells {
  launcher(shape: CellShape): (() => Promise<Cell>) | undefined
  close(): Promise<void>
}

/** Where there can be none, because the root has none of the packages for one, so long until it is tried again. */
const RETRY_MS = 10 * 60_000

export function createPreloaded(
  open: () => Promise<PreloadedDriver>,
  prove: (way: PreloadedDriver) => Promise<unknown>,
  log: Log,
): PreloadedCells {
  let way: PreloadedDriver | undefined
  let proven = false
  let opening: Promise<void> | undefined
  let notBefore = 0
  let closed = false

  async function begin(): Promise<void> {
    try {
      way = await open()
      if (closed) return
      await prove(way)
      proven = true
      log.info({}, `sandboxes for code that imports them are ${way.made}`)
    } catch (error) {
      notBefore = Date.now() + RETRY_MS
      await way?.close()
      log.info({ why: error instanceof Error ? error.message : String(error) }, 'no sandbox is preloaded')
    } finally {
      opening = undefined
    }
  }

  return {
    launcher(shape) {
      const made = proven ? way : undefined
      if (!made && !closed && Date.now() >= notBefore) opening ??= begin()
      return made?.ready() ? () => made.launch(shape) : undefined
    },
    async close() {
      closed = true
      await way?.close() // what is attacking it hears that it is gone
      await opening
      await way?.close()
    },
  }
}
