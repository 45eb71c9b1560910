/** The webhook deliveries of the project: state, attempts, next attempt. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { ask, project as projectPath, type Webhook } from '../../server/console-api.ts'
import { useSession } from '../../session/session.ts'
import { Page } from '../../shell/page.tsx'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/field.tsx'
import { ago, duration, moment } from '../../ui/format.ts'
import { Empty, Failure, Loading } from '../../ui/states.tsx'

interface WebhookPage {
  readonly deliveries: readonly Webhook[]
  readonly nextPageToken?: string
}

const TONES = { delivered: 'green', pending: 'blue', gone: 'plain', failed: 'red' } as const

export default function Webhooks() {
  const path = projectPath(useSession()?.project?.id ?? '')
  const [state, setState] = useState('')
  const webhooks = useInfiniteQuery({
    queryKey: ['webhooks', path, state],
    queryFn: ({ pageParam }) => {
      const query = new URLSearchParams({ ...(state && { state }), ...(pageParam && { pageToken: pageParam }) })
      return ask<WebhookPage>('GET', `${path}/deliveries?${query}`)
    },
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextPageToken,
    // Pending deliveries change without an action here.
    refetchInterval: 10_000,
  })
  const all = webhooks.data?.pages.flatMap((page) => page.deliveries)
  return (
    <Page
      narrow
      title="Webhooks"
      about="Signed notifications that a run has ended. Failed deliveries are retried for one day."
      actions={
        <Select aria-label="State" className="w-36" value={state} onChange={(event) => setState(event.target.value)}>
          <option value="">All</option>
          <option value="pending">Pending</option>
          <option value="delivered">Delivered</option>
          <option value="failed">Failed</option>
          <option value="gone">Gone</option>
        </Select>
      }
    >
      <div className="overflow-hidden rounded-xl border bg-card">
        {webhooks.error ? (
          <Failure error={webhooks.error} retry={() => webhooks.refetch()} />
        ) : !all ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : all.length === 0 ? (
          <Empty icon="link" title={state ? 'No webhooks in this state' : 'No webhooks yet'}>
            Start a run with <code className="text-small">webhook: {'{url}'}</code> to see its delivery attempts here.
          </Empty>
        ) : (
          <ul aria-label="Webhooks">
            {all.map((webhook) => (
              <Row key={webhook.interactionId} webhook={webhook} />
            ))}
          </ul>
        )}
      </div>
      {webhooks.hasNextPage && (
        <Button
          look="ghost"
          className="mt-3"
          busy={webhooks.isFetchingNextPage}
          onClick={() => webhooks.fetchNextPage()}
        >
          Load more
        </Button>
      )}
    </Page>
  )
}

function Row({ webhook }: { readonly webhook: Webhook }) {
  const { interactionId, host, state, attempts, nextAttemptTime, last } = webhook
  return (
    <li className="border-t first:border-t-0">
      <Link
        to="/interactions/$id"
        params={{ id: interactionId }}
        search={{ tab: 'outside' }}
        className="flex items-center gap-4 px-4 py-3 hover:bg-hover focus-visible:-outline-offset-2"
      >
        <span className="w-20 shrink-0">
          <Badge tone={TONES[state]}>{state}</Badge>
        </span>
        <span className="min-w-0 flex-1">
          <span className="block truncate font-medium">{host}</span>
          <span className="block truncate text-small text-faint">{about(webhook)}</span>
        </span>
        <span className="hidden shrink-0 text-right text-small text-faint tabular-nums sm:block">
          {last && <time title={moment(last.time)}>{ago(last.time)}</time>}
          <span className="block">
            {attempts} {attempts === 1 ? 'attempt' : 'attempts'}
            {nextAttemptTime && attempts > 0 && `, next ${until(nextAttemptTime)}`}
          </span>
        </span>
      </Link>
    </li>
  )
}

function about({ last, interactionId }: Webhook): string {
  if (!last) return `${interactionId}: not attempted yet`
  return last.error ?? `Status ${last.status} in ${duration(last.durationMs)}`
}

function until(time: string): string {
  const ms = Date.parse(time) - Date.now()
  return ms <= 1_000 ? 'now' : `in ${duration(ms)}`
}
