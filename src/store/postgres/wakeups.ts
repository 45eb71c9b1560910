/**
 * Wake-ups by LISTEN and NOTIFY, on a dedicated connection that is reopened whenever it breaks.
 *
 * They are sent outside the transactions that they announce: a NOTIFY inside makes commits wait for each other, which is ten
 * times slower. Topics are collected and sent as one message, each topic once, so a node sends at most fifty messages a second
 * however much it writes. Messages that can't be sent are dropped, because other nodes also poll.
 *
 * The connection sends itself an echo from time to time. If no echo arrives, the connection is dead, or a pooler routes each
 * statement to another server connection. Everything still works then, by polling.
 */
import { randomUUID } from 'node:crypto'
import { Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { Log } from '../../telemetry/log.ts'
import type { Wakeups } from '../wakeups.ts'
import { connectionOptions } from './pool.ts'

const CHANNEL = 'errand'
const PAUSE_MS = 20
/** Maximum size of a message, in bytes. Postgres allows 8,000. */
const MAX_PAYLOAD = 7_000
const ECHO_EVERY_MS = 30_000
const ECHO_WITHIN_MS = 10_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 10_000

export interface WakeupOptions {
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** `url`: as in `openPostgres`. Never throws: failures are logged and retried. */
export function openPostgresWakeups(url: string, { log }: WakeupOptions): Wakeups {
  const self = randomUUID()
  const topics = new Set<string>()
  const closing = new AbortController()
  let onTopic: (topic: string | undefined) => void = () => {}
  let client: pg.Client | undefined
  let retryMs = FIRST_RETRY_MS
  let failing = false
  let sending: NodeJS.Timeout | undefined
  let sentAt = 0
  const listening = keepListening()

  async function keepListening(): Promise<void> {
    while (!closing.signal.aborted) {
      const error = await listenUntilBroken()
      if (closing.signal.aborted) return
      if (!failing) log.warn({ err: error }, NO_WAKEUPS)
      failing = true
      await delay(retryMs * (0.5 + Math.random()), undefined, { signal: closing.signal }).catch(() => {})
      retryMs = Math.min(LAST_RETRY_MS, 2 * retryMs)
    }
  }

  /** Resolves with the error that ended the connection. */
  async function listenUntilBroken(): Promise<unknown> {
    const socket = new Socket()
    const broken = Promise.withResolvers<unknown>()
    const stop = () => broken.resolve(undefined)
    closing.signal.addEventListener('abort', stop)
    const opened = new pg.Client({
      ...connectionOptions(url),
      stream: () => socket,
      application_name: 'errand wake-ups',
    })
    let onEcho = () => {}
    opened.on('error', broken.resolve).on('end', () => broken.resolve(new Error('the connection was closed')))
    opened.on('notification', ({ payload = '' }) => {
      const [sender, about = ''] = payload.split(' ')
      const echoed = about === ''
      if (sender === self && echoed) onEcho()
      else if (sender !== self && !echoed) for (const topic of about.split(',')) onTopic(topic)
    })
    try {
      await opened.connect()
      await opened.query(`listen ${CHANNEL}`)
      return await Promise.race([broken.promise, echoForever(opened, (heard) => (onEcho = heard))])
    } catch (error) {
      return error
    } finally {
      client = undefined
      closing.signal.removeEventListener('abort', stop)
      socket.destroy()
    }
  }

  /** Rejects if an echo does not arrive. */
  async function echoForever(by: pg.Client, onEcho: (heard: () => void) => void): Promise<never> {
    for (;;) {
      const echo = Promise.withResolvers<void>()
      onEcho(echo.resolve)
      await notify(by, [])
      const late = delay(ECHO_WITHIN_MS, true, { ref: false })
      if (await Promise.race([echo.promise, late]))
        throw new Error('the connection does not receive its own notifications')
      if (client === undefined) connected(by)
      await delay(ECHO_EVERY_MS, undefined, { ref: false, signal: closing.signal })
    }
  }

  function connected(by: pg.Client): void {
    client = by
    if (failing) log.info({}, 'wake-ups from other nodes arrive again')
    failing = false
    retryMs = FIRST_RETRY_MS
    // Wake-ups sent before this were missed.
    onTopic(undefined)
  }

  /** Without waiting for an fsync: a wake-up need not survive a crash. Set in the transaction only, since a pooler may share the session. */
  function notify(by: pg.Client, about: readonly string[]): Promise<unknown> {
    const payload = by.escapeLiteral(`${self} ${about.join(',')}`)
    return by.query(`begin; set local synchronous_commit = off; notify ${CHANNEL}, ${payload}; commit`)
  }

  function send(): void {
    const about: string[] = []
    let length = 0
    for (const topic of topics) {
      length += topic.length + 1
      if (length > MAX_PAYLOAD) break
      about.push(topic)
      topics.delete(topic)
    }
    sentAt = performance.now()
    sending = topics.size > 0 ? setTimeout(send, PAUSE_MS) : undefined
    if (client) notify(client, about).catch(() => {})
  }

  return {
    send(topic) {
      if (client === undefined) return
      topics.add(topic)
      sending ??= setTimeout(send, Math.max(0, sentAt + PAUSE_MS - performance.now()))
    },
    listen(listener) {
      onTopic = listener
    },
    async close() {
      closing.abort()
      clearTimeout(sending)
      await listening
    },
  }
}

const NO_WAKEUPS =
  'no wake-ups from other nodes: their work, events and cancellations are found by polling, within seconds. A connection ' +
  'pooler can’t carry wake-ups: set databaseListenUrl to the address of the database itself'
