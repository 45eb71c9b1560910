/** Server settings: isolation, tools, limits. Limits that are not enforced come first. */
import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import type { Server } from '../../api/types.gen.js'
import { serverQuery } from '../../server/queries.ts'
import { Card, Page } from '../../shell/page.tsx'
import { count } from '../../ui/format.ts'
import { Icon } from '../../ui/icon.tsx'
import { Failure, Loading } from '../../ui/states.tsx'

export default function ServerPage() {
  const server = useQuery(serverQuery)
  return (
    <Page
      narrow
      title="Server"
      about={server.data ? `Errand ${server.data.version} at ${location.host}, as detected at startup.` : location.host}
    >
      {server.error ? (
        <Failure error={server.error} retry={() => server.refetch()} />
      ) : server.data ? (
        <Facts server={server.data} />
      ) : (
        <Loading rows={14} />
      )}
    </Page>
  )
}

function Facts({ server }: { readonly server: Server }) {
  const { sandbox, tools, limits } = server
  const { tried, refused, open } = sandbox.attacks
  return (
    <div className="grid gap-5">
      {sandbox.notEnforced.length > 0 && (
        <section aria-labelledby="not-enforced" className="rounded-xl bg-amber-soft px-4 py-3">
          <h2 id="not-enforced" className="flex items-center gap-2 font-semibold text-amber">
            <Icon name="alert" />
            Not enforced on this host
          </h2>
          <ul className="mt-2 grid gap-2 pl-6">
            {sandbox.notEnforced.map((fact) => (
              <NotEnforced key={fact} fact={fact} />
            ))}
          </ul>
        </section>
      )}
      <Card
        flush
        title="Isolation"
        about={`${sandbox.driver}; ${tried === 0 ? 'isolation was not tested' : `${refused} of ${tried} isolation tests passed at startup`}`}
      >
        <Rows
          rows={sandbox.enforced
            .map((fact) => split(fact))
            .map(([topic, how]) => [<Enforced key={topic} topic={topic} />, how || 'enforced'])}
        />
        {open.length > 0 && (
          <Rows
            rows={open.map(({ name, detail }) => [
              <span key={name} className="text-red">
                {name}
              </span>,
              detail ?? 'test failed',
            ])}
          />
        )}
        <p className="border-t px-4 py-3 text-small text-faint">Inside a sandbox: {sandbox.inside}.</p>
      </Card>
      <Card flush title="Tools" about={`${tools.available.length} of ${tools.available.length + tools.missing.length}`}>
        <Rows
          rows={[
            ...tools.available.map(
              (name) =>
                [
                  <Enforced key={name} topic={name} />,
                  name === 'web_search' && server.search ? `by ${server.search}` : 'available',
                ] as const,
            ),
            ...tools.missing.map(
              ({ name, remedy }) =>
                [
                  <span key={name}>{name}</span>,
                  <span key={name} className="text-amber">
                    {remedy.replaceAll('`', '')}
                  </span>,
                ] as const,
            ),
          ]}
        />
      </Card>
      <Card flush title="Limits" about="Configured by the operator.">
        <Rows rows={limitRows(limits)} />
      </Card>
    </div>
  )
}

function Rows({ rows }: { readonly rows: readonly (readonly [ReactNode, ReactNode])[] }) {
  return (
    <dl>
      {rows.map(([name, value], i) => (
        <div key={i} className="grid gap-x-6 border-t px-4 py-2 sm:grid-cols-[14rem_1fr]">
          <dt className="break-words font-medium">{name}</dt>
          <dd className="break-words text-soft">{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Enforced({ topic }: { readonly topic: string }) {
  return (
    <span className="flex items-center gap-2">
      <Icon name="check" className="text-green" />
      {topic}
    </span>
  )
}

function NotEnforced({ fact }: { readonly fact: string }) {
  const [topic, remedy] = split(fact)
  return (
    <li>
      <b className="font-medium">{topic}</b>
      {remedy && <p className="text-soft">{remedy}</p>}
    </li>
  )
}

/** Splits `memory: 512 MiB` into the topic and its value. */
function split(fact: string): readonly [string, string] {
  const at = fact.indexOf(': ')
  return at < 0 ? [fact, ''] : [fact.slice(0, at), fact.slice(at + 2)]
}

function limitRows(limits: Server['limits']): readonly (readonly [string, string])[] {
  const range = ({ default: usual, min, max }: { default: number; min: number; max: number }, unit: string) =>
    `${count(usual)}${unit} by default; ${count(min)} to ${count(max)} allowed`
  return [
    ['Run timeout', range(limits.maxTurnDuration, ' s')],
    ['Tool call timeout', range(limits.maxToolDuration, ' s')],
    ['Output tokens per run', range(limits.maxOutputTokens, '')],
    ['Memory per sandbox', range(limits.sandbox.memoryMiB, ' MiB')],
    ['CPUs per sandbox', range(limits.sandbox.cpus, '')],
    ['Concurrent runs per project', count(limits.runningPerProject)],
    ['New runs per minute', count(limits.interactionsPerMinute)],
    ['API calls per minute', count(limits.callsPerMinute)],
    ['Retention', `${limits.retentionDays} days`],
  ]
}
