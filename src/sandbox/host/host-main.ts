/**
 * The sandbox host: a process of its own, started by `openSandboxes`. Only it makes sandboxes. It outlives a killed server, so
 * that the next server finds its sandboxes again. When the host ends, for any reason, its sandboxes end too.
 *
 * Started with HostOptions as JSON in argv[2]. Reports the result of the start on file descriptor 3, as one line of JSON.
 */
import { appendFileSync, chmodSync, closeSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import { flushCompileCache } from 'node:module'
import { dirname, join } from 'node:path'
import type { Log } from '../driver.ts'
import { DRIVERS } from '../drivers.ts'
import { takeLock } from '../process-lock.ts'
import { openHost } from './host.ts'
import { type RunSelfTest, selectDriver } from './select-driver.ts'
import { probeDriver } from './self-probe.ts'
import { openServer } from './server.ts'
import { type HostOptions, pidFile, type StartReport } from './start-options.ts'

const REPORT_FD = 3
const MAX_LOG_BYTES = 1024 * 1024

function report(outcome: StartReport): void {
  try {
    writeSync(REPORT_FD, `${JSON.stringify(outcome)}\n`)
    closeSync(REPORT_FD)
  } catch {
    // The server that started this host is gone. Without another server the host ends after the grace time.
  }
}

function createFileLog(path: string): Log {
  const write = (level: string) => (details: object, message: string) => {
    const { err, ...rest } = details as { err?: Error }
    const line = { time: new Date().toISOString(), level, ...rest, ...(err ? { error: err.message } : {}), message }
    try {
      if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) rmSync(path)
      appendFileSync(path, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    } catch {
      // A full disk must not end sandboxes.
    }
  }
  return { debug: () => {}, info: write('info'), warn: write('warn'), error: write('error') }
}

async function main(options: HostOptions): Promise<void> {
  try {
    await takeLock(options.lock)
  } catch {
    report({ outcome: 'taken' })
    process.exit(0)
  }
  writeFileSync(pidFile(options.stateDir), `${process.pid}`, { mode: 0o600 })
  const log = createFileLog(options.logFile)
  try {
    const definition = DRIVERS[options.driver]
    const driver = await definition.open(options)
    const hidden = [...definition.hiddenPaths(options), join(options.stateDir, 'lock-name')]
    const selfTest: RunSelfTest = (tested, browsers) => probeDriver(tested, options.settings.limits, hidden, browsers)
    const { driver: chosen, facts } = await selectDriver(driver, selfTest, log).catch(async (error) => {
      await driver.close()
      throw error
    })
    const host = openHost(chosen, options.settings, log)
    const stop = async () => {
      rmSync(options.socketPath, { force: true })
      if (dirname(options.socketPath) !== options.stateDir)
        rmSync(dirname(options.socketPath), { recursive: true, force: true })
      await host.close().catch((error) => log.error({ err: error }, 'not every sandbox could be ended'))
      log.info({}, 'sandbox host ended')
      process.exit(0)
    }
    let stopping = false
    const onDone = () => {
      if (!stopping) void stop()
      stopping = true
    }
    rmSync(options.socketPath, { force: true }) // left by a dead host: this one holds the lock
    await openServer(host, { ...options, facts, onDone })
    chmodSync(options.socketPath, 0o600)
    process
      .on('SIGTERM', onDone)
      .on('SIGINT', onDone)
      .on('SIGHUP', () => {})
    log.info({ pid: process.pid }, 'sandbox host started')
    report({ outcome: 'ready' })
    flushCompileCache()
  } catch (error) {
    log.error({ err: error }, 'sandbox host could not start')
    report({ outcome: 'failed', message: error instanceof Error ? error.message : String(error) })
    process.exit(1)
  }
}

await main(JSON.parse(process.argv[2]!) as HostOptions)
