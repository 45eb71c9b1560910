/**
 * Wake-ups by LISTEN and NOTIFY, on one connection of their own that is made anew whenever it breaks.
 *
 * Sent outside of the transactions that they tell of: a NOTIFY inside makes commits wait for each other, which costs a
 * factor of ten. What is to be told is gathered and goes out as one message, each topic once, so a node sends at most fifty
 * a second however much it writes. What can't be sent is dropped: the others look now and then.
 *
 * The connection tells itself something now and then. Where it does not hear that, it is dead, or a pooler hands each
 * statement to another server: then everything still works, by looking.
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
/** Postgres takes 8,000 bytes. */
const MAX_PAYLOAD = 7_000
const ECHO_EVERY_MS = 30_000
const ECHO_WITHIN_MS = 10_000
const FIRST_RETRY_MS = 100
const LAST_RETRY_MS = 10_000

export interface WakeupOptions {
  readonly log: Pick<Log, 'info' | 'warn'>
}

/** `url`: as `openPostgres` takes it. Never throws: what fails is told in the log and tried again. */
export function openPostgresWakeups(url: string, { log }: WakeupOptions): Wakeups {
  const self = randomUUID()
  const topics = new Set<string>()
  const closing = new AbortController()
  let onTopic: (topic: string | undefined) => void = () => {}
  let client: pg.Client | undefined
  let retryMs = FIRST_RETRY_MS
  let mute = false
  let sending: NodeJS.Timeout | undefined
  let sentAt = 0
  const listening = keepListening()

  async function keepListening(): Promise<void> {
    while (!closing.signal.aborted) {
      const error = await listenUntilBroken()
      if (closing.signal.aborted) return
      if (!mute) log.warn({ err: error }, MUTE)
      mute = true
      await delay(retryMs * (0.5 + Math.random()), undefined, { signal: closing.signal }).catch(() => {})
      retryMs = Math.min(LAST_RETRY_MS, 2 * retryMs)
    }
  }

  /** Resolves with what ended it. */
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
      return await Promise.race([broken.promise, tellItself(opened, (heard) => (onEcho = heard))])
    } catch (error) {
      return error
    } finally {
      client = undefined
      closing.signal.removeEventListener('abort', stop)
      socket.destroy()
    }
  }

  /** Rejects where it does not hear itself. */
  async function tellItself(by: pg.Client, onEcho: (heard: () => void) => void): Promise<never> {
    for (;;) {
      const echo = Promise.withResolvers<void>()
      onEcho(echo.resolve)
      await notify(by, [])
      const late = delay(ECHO_WITHIN_MS, true, { ref: false })
      if (await Promise.race([echo.promise, late])) throw new Error('it does not hear what it sends itself')
      if (client === undefined) heardFirst(by)
      await delay(ECHO_EVERY_MS, undefined, { ref: false, signal: closing.signal })
    }
  }

  function heardFirst(by: pg.Client): void {
    client = by
    if (mute) log.info({}, 'wake-ups from other nodes arrive again')
    mute = false
    retryMs = FIRST_RETRY_MS
    // What was sent before was not heard.
    onTopic(undefined)
  }

  /** Need not outlive a crash, so it waits for no disk. Said within the transaction: a pooler gives the session to others, who do. */
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

const MUTE =
  'no wake-ups from other nodes: their work, events and cancellations are found by looking, within seconds. A pooler that ' +
  'shares connections can’t carry them: set databaseListenUrl to the address of the database itself'
