/** The command palette: pages, agents, runs by ID, and commands. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { Command } from 'cmdk'
import { Dialog } from 'radix-ui'
import { type ReactNode, useState } from 'react'
import { listAgents } from '../api/sdk.gen.js'
import { data } from '../server/client.ts'
import { Icon, type IconName } from '../ui/icon.tsx'
import { NAVIGATION } from './navigation.ts'
import { setTheme } from './theme.ts'

export default function Palette({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate()
  const [text, setText] = useState('')
  const agents = useQuery({
    queryKey: ['agents', 'palette'],
    queryFn: () => data(listAgents({ query: { pageSize: 100 } })),
  })
  const go = (action: () => void) => () => {
    onClose()
    action()
  }
  const runId = /^int_\w+$/.exec(text.trim())?.[0]
  return (
    <Dialog.Root open onOpenChange={(open) => !open && onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-[rgb(20_19_17/0.45)] animate-appear" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed left-1/2 top-[max(1rem,14vh)] z-50 w-[calc(100vw-2rem)] max-w-xl -translate-x-1/2 overflow-hidden rounded-xl bg-card shadow-pop"
        >
          <Dialog.Title className="sr-only">Search and commands</Dialog.Title>
          <Command label="Search and commands">
            <div className="flex items-center gap-3 border-b px-4">
              <Icon name="search" className="text-faint" />
              <Command.Input
                value={text}
                onValueChange={setText}
                placeholder="Search pages, agents or a run ID…"
                className="h-12 w-full bg-transparent text-lead outline-none focus-visible:outline-none"
              />
            </div>
            <Command.List className="max-h-[min(24rem,60vh)] overflow-y-auto p-1.5 [&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2.5 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-micro [&_[cmdk-group-heading]]:text-faint">
              <Command.Empty className="px-3 py-8 text-center text-soft">No results.</Command.Empty>
              {runId && (
                <Command.Group heading="Run">
                  <Item
                    icon="list"
                    value={runId}
                    onSelect={go(() => navigate({ to: '/interactions/$id', params: { id: runId } }))}
                  >
                    Open {runId}
                  </Item>
                </Command.Group>
              )}
              <Command.Group heading="Go to">
                {NAVIGATION.map(({ to, name, icon, letter }) => (
                  <Item
                    key={to}
                    icon={icon}
                    value={name}
                    onSelect={go(() => navigate({ to }))}
                    keys={`G ${letter.toUpperCase()}`}
                  >
                    {name}
                  </Item>
                ))}
              </Command.Group>
              <Command.Group heading="Commands">
                <Item icon="play" value="New run" onSelect={go(() => navigate({ to: '/playground' }))} keys="C">
                  New run
                </Item>
                <Item icon="plus" value="Create agent" onSelect={go(() => navigate({ to: '/agents/new' }))}>
                  Create agent
                </Item>
                <Item icon="sun" value="Light theme" onSelect={go(() => setTheme('light'))}>
                  Light theme
                </Item>
                <Item icon="moon" value="Dark theme" onSelect={go(() => setTheme('dark'))}>
                  Dark theme
                </Item>
                <Item icon="monitor" value="System theme" onSelect={go(() => setTheme('system'))}>
                  System theme
                </Item>
              </Command.Group>
              {agents.data && agents.data.agents.length > 0 && (
                <Command.Group heading="Agents">
                  {agents.data.agents.map(({ id, displayName }) => (
                    <Item
                      key={id}
                      icon="agent"
                      value={`${displayName ?? ''} ${id}`}
                      onSelect={go(() => navigate({ to: '/agents/$id', params: { id } }))}
                    >
                      {displayName ?? id}
                    </Item>
                  ))}
                </Command.Group>
              )}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  )
}

function Item({
  icon,
  value,
  onSelect,
  keys,
  children,
}: {
  readonly icon: IconName
  readonly value: string
  readonly onSelect: () => void
  readonly keys?: string
  readonly children: ReactNode
}) {
  return (
    <Command.Item
      value={value}
      onSelect={onSelect}
      className="flex h-9 cursor-pointer items-center gap-3 rounded-md px-2.5 data-[selected=true]:bg-hover"
    >
      <Icon name={icon} className="text-soft" />
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {keys && <kbd className="font-sans text-micro text-faint max-lg:hidden">{keys}</kbd>}
    </Command.Item>
  )
}
