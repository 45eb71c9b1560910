/** The earlier turns of a conversation, oldest first: instructions and answers. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { lazy, Suspense } from 'react'
import { runQuery } from '../server/queries.ts'

const Answer = lazy(() => import('../trace/markdown.tsx'))

/** Turns before these are not shown. */
const MAX_TURNS = 20

export function EarlierTurns({ id, depth = 1 }: { readonly id: string; readonly depth?: number }) {
  const { data: run } = useQuery(runQuery(id))
  if (!run) return null
  return (
    <>
      {run.previousInteractionId && depth < MAX_TURNS && (
        <EarlierTurns id={run.previousInteractionId} depth={depth + 1} />
      )}
      <UserMessage text={run.instruction} />
      <div className="border-b pb-4">
        <Suspense fallback={<p className="prose whitespace-pre-wrap">{run.output}</p>}>
          <Answer text={run.output} />
        </Suspense>
        <Link to="/interactions/$id" params={{ id }} className="mt-2 inline-block text-small text-soft hover:text-text">
          View steps
        </Link>
      </div>
    </>
  )
}

export function UserMessage({ text }: { readonly text: string }) {
  return (
    <p className="ml-auto max-w-[85%] whitespace-pre-wrap break-words rounded-xl rounded-br-sm bg-hover px-3.5 py-2.5">
      {text}
    </p>
  )
}
