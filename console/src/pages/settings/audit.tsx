/** The audit log of the account, newest first. For owners. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { type AuditEntry, account as accountPath, ask } from '../../server/console-api.ts'
import { useSession } from '../../session/session.ts'
import { Page } from '../../shell/page.tsx'
import { Button } from '../../ui/button.tsx'
import { moment } from '../../ui/format.ts'
import { Empty, Failure, Loading } from '../../ui/states.tsx'

export default function Audit() {
  const session = useSession()
  const path = session && accountPath(session.account.id)
  const log = useInfiniteQuery({
    queryKey: ['account-audit', path],
    queryFn: ({ pageParam }) =>
      ask<{ entries: AuditEntry[]; nextPageToken?: string }>(
        'GET',
        `${path}/audit?pageSize=50${pageParam ? `&pageToken=${encodeURIComponent(pageParam)}` : ''}`,
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.nextPageToken,
    enabled: session?.role === 'owner',
  })
  const all = log.data?.pages.flatMap(({ entries }) => entries)
  return (
    <Page narrow title="Audit log" about="Changes to this account, newest first.">
      <div className="overflow-hidden rounded-xl border bg-card">
        {session && session.role !== 'owner' ? (
          <Empty icon="shield" title="Owners only">
            Only owners of the account can read the audit log.
          </Empty>
        ) : log.error ? (
          <Failure error={log.error} retry={() => log.refetch()} />
        ) : !all ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : all.length === 0 ? (
          <Empty icon="history" title="No entries yet" />
        ) : (
          <ul aria-label="Audit">
            {all.map(({ id, time, actor, action, target, details }) => (
              <li
                key={id}
                className="flex flex-wrap items-center gap-x-4 gap-y-0.5 border-t px-4 py-2.5 first:border-t-0"
              >
                <code className="text-small">{action}</code>
                <span className="min-w-40 flex-1 truncate text-soft" title={target ?? undefined}>
                  {describeDetails(details) || target}
                </span>
                <span className="text-small text-soft">{actor?.email ?? 'Server'}</span>
                <time className="text-small text-faint">{moment(time)}</time>
              </li>
            ))}
          </ul>
        )}
      </div>
      {log.hasNextPage && (
        <Button look="ghost" className="mt-3" busy={log.isFetchingNextPage} onClick={() => log.fetchNextPage()}>
          Load more
        </Button>
      )}
    </Page>
  )
}

/** The details as text. The key `name` is left out. */
function describeDetails(details: AuditEntry['details']): string {
  return Object.entries(details)
    .map(([key, value]) => (key === 'name' ? value : `${key} ${value}`))
    .join(', ')
}
