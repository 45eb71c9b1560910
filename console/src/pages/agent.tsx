/** The page of an agent: configuration, versions, and code to call it. */
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { Tabs } from 'radix-ui'
import { lazy, Suspense, useState } from 'react'
import { AgentForm } from '../agent-form/agent-form.tsx'
import { settingsOf, toPatch } from '../agent-form/settings.ts'
import { deleteAgent, updateAgent } from '../api/sdk.gen.js'
import type { Agent, AgentPatch } from '../api/types.gen.js'
import { data } from '../server/client.ts'
import { Problem } from '../server/problem.ts'
import { agentQuery } from '../server/queries.ts'
import { useMayChange } from '../session/session.ts'
import { Page } from '../shell/page.tsx'
import { Button, ButtonLink, IconButton } from '../ui/button.tsx'
import { CopyIcon } from '../ui/copy.tsx'
import { ago } from '../ui/format.ts'
import { Menu, MenuItem } from '../ui/overlay.tsx'
import { Failure, Loading } from '../ui/states.tsx'
import { TAB_CLASS } from '../ui/tab-class.ts'
import { toast } from '../ui/toast.tsx'

const CodeDialog = lazy(() => import('../agent-form/code-dialog.tsx'))
const Versions = lazy(() => import('./agent-versions.tsx'))

const route = getRouteApi('/agents/$id')

export default function AgentPage() {
  const { id } = route.useParams()
  const agent = useQuery(agentQuery(id))
  if (agent.data) return <AgentDetails agent={agent.data} />
  return (
    <Page narrow title="Agent" above={<Link to="/agents">Agents</Link>}>
      {agent.error ? <Failure error={agent.error} retry={() => agent.refetch()} /> : <Loading rows={10} />}
    </Page>
  )
}

function AgentDetails({ agent }: { readonly agent: Agent }) {
  const navigate = useNavigate()
  const { tab = 'configuration' } = route.useSearch()
  const { id, displayName = '', description = '', version, updateTime } = agent
  const [code, setCode] = useState(false)
  const save = useSave(agent)
  const mayChange = useMayChange()
  return (
    <Page
      narrow
      title={displayName || id}
      above={<Link to="/agents">Agents</Link>}
      about={
        <span className="flex flex-wrap items-center gap-x-3">
          <span className="flex items-center">
            <code className="text-small">{id}</code>
            <CopyIcon text={id} label="Copy ID" />
          </span>
          <span>
            version {version}, {ago(updateTime)}
          </span>
        </span>
      }
      actions={
        <>
          {mayChange && (
            <ButtonLink to="/playground" search={{ agent: id }} look="primary" icon="play">
              Run agent
            </ButtonLink>
          )}
          <Button icon="code" onClick={() => setCode(true)}>
            Get code
          </Button>
          <More agent={agent} />
        </>
      }
    >
      <Tabs.Root
        value={tab}
        onValueChange={(next) =>
          navigate({
            to: '/agents/$id',
            params: { id },
            search: next === 'configuration' ? {} : { tab: next },
            replace: true,
          })
        }
      >
        <Tabs.List aria-label="Sections" className="mb-5 flex gap-5 border-b">
          <Tabs.Trigger value="configuration" className={TAB_CLASS}>
            Configuration
          </Tabs.Trigger>
          <Tabs.Trigger value="versions" className={TAB_CLASS}>
            Versions
          </Tabs.Trigger>
        </Tabs.List>
        <Tabs.Content value="configuration" tabIndex={-1}>
          <AgentForm
            key={agent.etag}
            stored
            first={{ id, displayName, description, settings: settingsOf(agent) }}
            error={save.error}
            onSave={(draft) =>
              save.mutate({
                displayName: draft.displayName || null,
                description: draft.description || null,
                ...toPatch(draft.settings),
              })
            }
            footer={(changed) =>
              mayChange && (
                <Button type="submit" look="primary" busy={save.isPending} disabled={!changed}>
                  Save as version {version + 1}
                </Button>
              )
            }
          />
        </Tabs.Content>
        <Tabs.Content value="versions" tabIndex={-1}>
          <Suspense fallback={<Loading />}>
            <Versions agent={agent} />
          </Suspense>
        </Tabs.Content>
      </Tabs.Root>
      <Suspense fallback={null}>
        {code && <CodeDialog body={{ agentId: id, instruction: 'What is 17 * 23?' }} onClose={() => setCode(false)} />}
      </Suspense>
    </Page>
  )
}

/** Saves against the version that is shown. A change that somebody else made meanwhile is reported as a conflict. */
export function useSave(agent: Agent) {
  const cache = useQueryClient()
  return useMutation({
    mutationFn: (body: AgentPatch) =>
      data(updateAgent({ path: { id: agent.id }, body, headers: { 'If-Match': agent.etag } })),
    onSuccess: (saved) => {
      cache.setQueryData(agentQuery(agent.id).queryKey, saved)
      cache.invalidateQueries({ queryKey: ['agents'] })
      toast(saved.version === agent.version ? 'No changes to save' : `Saved as version ${saved.version}`)
    },
  })
}

function More({ agent }: { readonly agent: Agent }) {
  const navigate = useNavigate()
  const cache = useQueryClient()
  const mayChange = useMayChange()
  const remove = useMutation({
    mutationFn: () => deleteAgent({ path: { id: agent.id } }),
    onSuccess: async () => {
      await navigate({ to: '/agents' })
      cache.removeQueries({ queryKey: agentQuery(agent.id).queryKey })
      cache.invalidateQueries({ queryKey: ['agents'] })
      toast('Deleted')
    },
    onError: (error) => toast(Problem.from(error).message, true),
  })
  return (
    <Menu trigger={<IconButton icon="more" label="More actions" />}>
      <MenuItem icon="list" onSelect={() => navigate({ to: '/interactions', search: { agentId: agent.id } })}>
        View runs
      </MenuItem>
      <MenuItem
        icon="trash"
        danger
        disabled={!mayChange}
        onSelect={() => confirm(`Delete the agent ${agent.id} and all its versions?`) && remove.mutate()}
      >
        Delete
      </MenuItem>
    </Menu>
  )
}
