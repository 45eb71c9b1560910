/**
 * Cells with large packages imported (driver.ts). The variant is opened when a first run asks for such a cell. Callers never
 * wait for it: until it is open and has passed the self-test, and whenever no cell is ready, they get a plain one.
 */
import type { Cell, CellShape, Log, PreloadedDriver } from '../driver.ts'

export interface PreloadedCells {
  launcher(shape: CellShape): (() => Promise<Cell>) | undefined
  close(): Promise<void>
}

/** Delay before another try, if the variant cannot be opened (usually because the root has none of the packages). */
const RETRY_MS = 10 * 60_000

export function createPreloaded(
  open: () => Promise<PreloadedDriver>,
  selfTest: (driver: PreloadedDriver) => Promise<unknown>,
  log: Log,
): PreloadedCells {
  let driver: PreloadedDriver | undefined
  let passed = false
  let opening: Promise<void> | undefined
  let notBefore = 0
  let closed = false

  async function begin(): Promise<void> {
    try {
      driver = await open()
      if (closed) return
      await selfTest(driver)
      passed = true
      log.info({}, `sandboxes for code that imports these packages are ${driver.made}`)
    } catch (error) {
      notBefore = Date.now() + RETRY_MS
      await driver?.close()
      log.info({ why: error instanceof Error ? error.message : String(error) }, 'no sandbox is preloaded')
    } finally {
      opening = undefined
    }
  }

  return {
    launcher(shape) {
      const made = passed ? driver : undefined
      if (!made && !closed && Date.now() >= notBefore) opening ??= begin()
      return made?.ready() ? () => made.launch(shape) : undefined
    },
    async close() {
      closed = true
      await driver?.close() // ends a self-test that is running
      await opening
      await driver?.close()
    },
  }
}
