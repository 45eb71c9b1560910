/** A run's network activity and webhook deliveries. */
import { useQuery } from '@tanstack/react-query'
import { auditQuery, deliveriesQuery } from '../server/queries.ts'
import { Card } from '../shell/page.tsx'
import { Badge } from '../ui/badge.tsx'
import { duration, moment } from '../ui/format.ts'
import { Failure, Loading } from '../ui/states.tsx'

export function AuditView({ id }: { readonly id: string }) {
  const audit = useQuery(auditQuery(id))
  if (audit.error) return <Failure error={audit.error} retry={() => audit.refetch()} />
  return (
    <Card flush title="Network activity" about="Each connection is recorded before it is opened.">
      {!audit.data ? (
        <div className="px-4 pb-3">
          <Loading rows={3} />
        </div>
      ) : audit.data.entries.length === 0 ? (
        <p className="px-4 pb-4 text-soft">No connections.</p>
      ) : (
        <ul>
          {audit.data.entries.map((entry) => (
            <li
              key={`${entry.time} ${entry.kind} ${entry.host}`}
              className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t px-4 py-2.5"
            >
              <Badge tone={entry.outcome === 'dialled' ? 'green' : 'red'}>{entry.outcome}</Badge>
              <code className="min-w-48 flex-1 break-words text-small">
                {entry.host}:{entry.port}
              </code>
              <span className="text-small text-soft">{entry.kind}</span>
              {entry.count > 1 && <span className="text-small text-faint">×{entry.count}</span>}
              <time className="text-small text-faint">{moment(entry.time)}</time>
            </li>
          ))}
        </ul>
      )}
    </Card>
  )
}

export function DeliveriesView({ id }: { readonly id: string }) {
  const { data } = useQuery(deliveriesQuery(id))
  if (!data?.state) return null
  return (
    <Card
      flush
      title="Webhook"
      actions={
        <Badge tone={data.state === 'delivered' ? 'green' : data.state === 'pending' ? 'blue' : 'red'}>
          {data.state}
        </Badge>
      }
    >
      <ul>
        {data.deliveries.map(({ attempt, time, durationMs, status, error }) => (
          <li key={attempt} className="flex flex-wrap items-center gap-x-4 gap-y-1 border-t px-4 py-2.5">
            <span className="text-soft">Attempt {attempt}</span>
            <span className="min-w-48 flex-1 break-words">{error ?? status}</span>
            <span className="text-small text-faint tabular-nums">{duration(durationMs)}</span>
            <time className="text-small text-faint">{moment(time)}</time>
          </li>
        ))}
      </ul>
    </Card>
  )
}
