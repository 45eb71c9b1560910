/** An agent's versions, newest first, with their changes and a button to restore each. */
import { useInfiniteQuery } from '@tanstack/react-query'
import { diffLines } from 'diff'
import { useState } from 'react'
import { toRestore } from '../agent-form/settings.ts'
import type { Agent } from '../api/types.gen.js'
import { Problem } from '../server/problem.ts'
import { agentVersionsQuery } from '../server/queries.ts'
import { useMayChange } from '../session/session.ts'
import { Badge } from '../ui/badge.tsx'
import { Button } from '../ui/button.tsx'
import { cx } from '../ui/cx.ts'
import { ago, moment } from '../ui/format.ts'
import { Icon } from '../ui/icon.tsx'
import { Scroller } from '../ui/scroller.tsx'
import { Failure, Loading, Notice } from '../ui/states.tsx'
import { useSave } from './agent.tsx'

export default function AgentVersions({ agent }: { readonly agent: Agent }) {
  const versions = useInfiniteQuery(agentVersionsQuery(agent.id))
  const save = useSave(agent)
  const all = versions.data?.pages.flatMap((page) => page.versions)
  if (versions.error) return <Failure error={versions.error} retry={() => versions.refetch()} />
  if (!all) return <Loading />
  return (
    <div className="grid gap-3">
      {save.error && (
        <Notice tone="red" title="The version was not restored">
          {Problem.from(save.error).message}
        </Notice>
      )}
      <ol aria-label="Versions" className="grid gap-3">
        {all.map((version, i) => (
          <Version
            key={version.version}
            version={version}
            before={all[i + 1]}
            newest={version.version === agent.version}
            busy={save.isPending}
            onRestore={() => save.mutate(toRestore(version, agent))}
          />
        ))}
      </ol>
      {versions.hasNextPage && (
        <Button look="ghost" busy={versions.isFetchingNextPage} onClick={() => versions.fetchNextPage()}>
          Load more
        </Button>
      )}
    </div>
  )
}

interface VersionProps {
  readonly version: Agent
  readonly before: Agent | undefined
  readonly newest: boolean
  readonly busy: boolean
  readonly onRestore: () => void
}

function Version({ version, before, newest, busy, onRestore }: VersionProps) {
  const [open, setOpen] = useState(newest)
  const mayChange = useMayChange()
  return (
    <li className="overflow-hidden rounded-xl border bg-card">
      <div className="flex items-center gap-3 pr-3">
        <button
          type="button"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
          className="flex h-11 min-w-0 flex-1 items-center gap-3 pl-4 text-left hover:bg-hover"
        >
          <Icon name="right" className={cx('text-faint transition-transform', open && 'rotate-90')} />
          <span className="font-medium">Version {version.version}</span>
          {newest && <Badge tone="accent">current</Badge>}
          <time
            dateTime={version.updateTime}
            title={moment(version.updateTime)}
            className="truncate text-small text-faint"
          >
            {ago(version.updateTime)}
          </time>
        </button>
        {!newest && mayChange && (
          <Button size="small" icon="history" busy={busy} onClick={onRestore}>
            Restore
          </Button>
        )}
      </div>
      {open && <Difference before={before} after={version} />}
    </li>
  )
}

function Difference({ before, after }: { readonly before: Agent | undefined; readonly after: Agent }) {
  const parts = diffLines(before ? readable(before) : '', readable(after))
  return (
    <Scroller
      label={before ? `Changes since version ${before.version}` : 'The first version'}
      className="max-h-96 overflow-auto border-t bg-code py-2"
    >
      <pre className="text-small leading-[1.5]">
        {parts.flatMap((part, i) =>
          part.value
            .replace(/\n$/, '')
            .split('\n')
            .map((line, j) => (
              <span
                key={`${i}.${j}`}
                className={cx(
                  'block px-4 whitespace-pre-wrap break-words',
                  part.added && before && 'bg-green-soft text-green',
                  part.removed && 'bg-red-soft text-red',
                )}
              >
                {part.added && before ? '+ ' : part.removed ? '− ' : '  '}
                {line}
              </span>
            )),
        )}
      </pre>
    </Scroller>
  )
}

/** The agent as text with one value per line, so that the diff shows whole values. */
function readable(agent: Agent): string {
  const { displayName, description, systemInstruction, model, tools, skills, mcp, network, policy, labels } = agent
  const lists = { tools, skills, mcp: mcp.map((server) => JSON.stringify(server)) }
  return [
    displayName && `name: ${displayName}`,
    description && `description: ${description}`,
    `model: ${model}`,
    ...Object.entries(lists).flatMap(([name, list]) =>
      list.length > 0 ? [`${name}:`, ...list.map((entry) => `  ${entry}`)] : [],
    ),
    network && `network: ${typeof network === 'string' ? network : JSON.stringify(network)}`,
    ...Object.entries(policy).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
    ...Object.entries(labels).map(([name, value]) => `label ${name}: ${value}`),
    systemInstruction && `system instruction:\n${systemInstruction.replace(/^/gm, '  ')}`,
  ]
    .filter((line): line is string => Boolean(line))
    .join('\n')
    .concat('\n')
}
