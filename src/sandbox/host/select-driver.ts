/**
 * A driver that may have a faster way to the same cells: which one serves here. No cell is made in a way before the attacks
 * of the self-test were made on two cells of it and refused.
 */
import type { Driver, DriverChoice, Faster, Log } from '../driver.ts'
import type { SandboxFacts } from '../port.ts'
import { createPreloaded } from './preloaded.ts'

/** Makes the attacks, from browsers' cells too unless told not to. Throws an Error with a sentence for the operator where one comes through. */
export type Prove = (driver: Driver, browsers?: boolean) => Promise<SandboxFacts>

/** Throws an Error with a sentence for the operator; then nothing of the faster way is left open. */
export async function chooseWay(
  driver: Driver,
  mode: DriverChoice['forkServer'],
  prove: Prove,
  log: Log,
): Promise<{ driver: Driver; facts: SandboxFacts }> {
  if (!driver.openFaster) return { driver, facts: await prove(driver) }
  let why = 'sandbox.forkServer is off'
  if (mode !== 'off') {
    let faster: Faster | undefined
    try {
      faster = await driver.openFaster()
      const facts = await prove(faster)
      log.info({}, `sandboxes are ${faster.made}`)
      return {
        driver: joined(driver, faster, prove, mode, log),
        facts: { ...facts, made: faster.made },
      }
    } catch (error) {
      await faster?.close()
      why = error instanceof Error ? error.message : String(error)
      if (mode === 'on')
        throw new Error(`sandbox.forkServer is on, and there can be none here: ${why}. Set it to auto.`)
    }
  }
  log.info({ why }, `sandboxes are ${driver.made}`)
  return { driver, facts: { ...(await prove(driver)), made: `${driver.made} (${why})` } }
}

/** The faster way for what it suits; the driver's own for the rest and, with a word to the log, where the faster one fails. */
function joined(driver: Driver, faster: Faster, prove: Prove, mode: DriverChoice['forkServer'], log: Log): Driver {
  const preloaded = createPreloaded(faster.openPreloaded, (way) => prove(way, false), log)
  let proven: Promise<unknown> | undefined
  function proveOnce(): Promise<unknown> {
    proven ??= prove(driver).catch((error) => {
      proven = undefined
      throw error
    })
    return proven
  }
  return {
    ...driver,
    async launch(shape) {
      if (faster.suits(shape)) {
        try {
          return await faster.launch(shape)
        } catch (error) {
          if (mode === 'on') throw error
          log.warn({ err: error }, `a sandbox could not be ${faster.made}`)
        }
      }
      await proveOnce()
      return driver.launch(shape)
    },
    preloaded: (shape) => (shape.profile === 'code' && faster.suits(shape) ? preloaded.launcher(shape) : undefined),
    async close() {
      await proven?.catch(() => {})
      await preloaded.close()
      await faster.close()
      await driver.close()
    },
  }
}
