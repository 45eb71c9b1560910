/** A hook that starts or opens a run and follows its events. Events of one animation frame are rendered together. */
import { useQueryClient } from '@tanstack/react-query'
import { useCallback, useEffect, useRef, useState } from 'react'
import type { NewInteraction } from '../api/types.gen.js'
import { runQuery } from '../server/queries.ts'
import { followRun, type LogEvent, startRun } from '../server/stream.ts'
import { EMPTY, fold, type Trace } from './fold.ts'

export interface LiveRun {
  readonly id: string | undefined
  readonly trace: Trace
  /** The error if the run could not be started or followed. */
  readonly problem: unknown
  readonly starting: boolean
  start(body: NewInteraction): void
}

/** `id`: an existing run, which is read from its first event. `onStarted` gets the id of a new run. */
export function useRun(id: string | undefined, onStarted?: (id: string) => void): LiveRun {
  const cache = useQueryClient()
  const [trace, setTrace] = useState<Trace>(EMPTY)
  const [problem, setProblem] = useState<unknown>()
  const [starting, setStarting] = useState(false)
  const followed = useRef<string>(undefined)
  const abort = useRef<AbortController>(undefined)

  const begin = useCallback(
    (work: (onEvents: (events: readonly LogEvent[]) => void, signal: AbortSignal) => Promise<void>) => {
      abort.current?.abort()
      const controller = new AbortController()
      abort.current = controller
      setTrace(EMPTY)
      setProblem(undefined)
      const onEvents = inFrames((events) => {
        if (!controller.signal.aborted) setTrace((before) => fold(before, events))
      })
      work(onEvents, controller.signal)
        .then(async () => {
          // Files and cost are not in the events: refetches the interaction and the lists, and cancels older fetches.
          await cache.cancelQueries({ queryKey: ['interactions'] })
          cache.invalidateQueries({ queryKey: ['interactions'] })
        })
        .catch((error) => {
          if (controller.signal.aborted) return
          setProblem(error)
          setStarting(false)
        })
    },
    [cache],
  )

  useEffect(() => {
    if (!id || followed.current === id) return
    followed.current = id
    begin((onEvents, signal) => followRun(id, 0, onEvents, signal))
  }, [id, begin])
  useEffect(
    () => () => {
      abort.current?.abort()
      followed.current = undefined
    },
    [],
  )

  const start = (body: NewInteraction) => {
    setStarting(true)
    begin((onEvents, signal) =>
      startRun(
        body,
        (started) => {
          followed.current = started
          setStarting(false)
          cache.removeQueries({ queryKey: runQuery(started).queryKey })
          onStarted?.(started)
        },
        onEvents,
        signal,
      ),
    )
  }
  return { id, trace, problem, starting, start }
}

function inFrames(show: (events: readonly LogEvent[]) => void): (events: readonly LogEvent[]) => void {
  let waiting: LogEvent[] = []
  return (events) => {
    if (waiting.length === 0) {
      // A tab in the background has no frames.
      const flush = () => {
        const ready = waiting
        waiting = []
        show(ready)
      }
      if (document.hidden) setTimeout(flush, 50)
      else requestAnimationFrame(flush)
    }
    waiting.push(...events)
  }
}
