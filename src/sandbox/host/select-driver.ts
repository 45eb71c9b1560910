/**
 * Selects between a driver and its faster variant. A variant makes no sandbox before it has passed the self-test: the
 * attacks of probe/, made on two of its sandboxes.
 */
import type { Driver, FasterDriver, Log } from '../driver.ts'
import type { SandboxFacts } from '../port.ts'
import { createPreloaded } from './preloaded.ts'

/** Runs the attacks, on a browser's sandbox too by default. Throws an Error with a sentence for the operator if one succeeds. */
export type RunSelfTest = (driver: Driver, browsers?: boolean) => Promise<SandboxFacts>

/** Throws an Error with a sentence for the operator; the faster variant is closed then. */
export async function selectDriver(
  driver: Driver,
  selfTest: RunSelfTest,
  log: Log,
): Promise<{ driver: Driver; facts: SandboxFacts }> {
  if (!driver.faster) return { driver, facts: await selfTest(driver) }
  const { use, setting } = driver.faster
  let why = `${setting} is off`
  if (use !== 'off') {
    let faster: FasterDriver | undefined
    try {
      faster = await driver.faster.open()
      const facts = await selfTest(faster)
      log.info({}, `sandboxes are ${faster.made}`)
      return { driver: withFallback(driver, faster, selfTest, log), facts: { ...facts, made: faster.made } }
    } catch (error) {
      await faster?.close()
      why = error instanceof Error ? error.message : String(error)
      if (use === 'on') throw new Error(`${setting} is on, and there can be none here: ${why}. Set it to auto.`)
    }
  }
  log.info({ why }, `sandboxes are ${driver.made}`)
  return { driver, facts: { ...(await selfTest(driver)), made: `${driver.made} (${why})` } }
}

/** Uses the faster variant for the sandboxes that it can make, and the driver itself for the rest and if the variant fails. */
function withFallback(driver: Driver, faster: FasterDriver, selfTest: RunSelfTest, log: Log): Driver {
  const preloaded = createPreloaded(faster.openPreloaded, (tested) => selfTest(tested, false), log)
  let tested: Promise<unknown> | undefined
  function testOnce(): Promise<unknown> {
    tested ??= selfTest(driver).catch((error) => {
      tested = undefined
      throw error
    })
    return tested
  }
  return {
    ...driver,
    async launch(shape) {
      if (faster.canMake(shape)) {
        try {
          return await faster.launch(shape)
        } catch (error) {
          if (driver.faster?.use === 'on') throw error
          log.warn({ err: error }, `a sandbox could not be ${faster.made}`)
        }
      }
      await testOnce()
      return driver.launch(shape)
    },
    preloaded: (shape) => (shape.profile === 'code' && faster.canMake(shape) ? preloaded.launcher(shape) : undefined),
    async close() {
      await tested?.catch(() => {})
      await preloaded.close()
      await faster.close()
      await driver.close()
    },
  }
}
