/** The command palette: every page, every agent, an interaction by its id, and what can be done from anywhere. */
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
                placeholder="Go to a page, an agent, or an interaction by its id …"
                className="h-12 w-full bg-transparent text-lead outline-none focus-visible:outline-none"
              />
            </div>
            <Command.List className="max-h-[min(24rem,60vh)] overflow-y-auto p-1.5 [&_[cmdk-group-heading]]:px-2.5 [&_[cmdk-group-heading]]:pt-2.5 [&_[cmdk-group-heading]]:pb-1 [&_[cmdk-group-heading]]:text-micro [&_[cmdk-group-heading]]:text-faint">
              <Command.Empty className="px-3 py-8 text-center text-soft">Nothing by that name.</Command.Empty>
              {runId && (
                <Command.Group heading="Interaction">
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
              <Command.Group heading="Do">
                <Item icon="play" value="New run" onSelect={go(() => navigate({ to: '/playground' }))} keys="C">
                  New run
                </Item>
                <Item icon="plus" value="Create an agent" onSelect={go(() => navigate({ to: '/agents/new' }))}>
                  Create an agent
                </Item>
                <Item icon="sun" value="Light colours" onSelect={go(() => setTheme('light'))}>
                  Light colours
                </Item>
                <Item icon="moon" value="Dark colours" onSelect={go(() => setTheme('dark'))}>
                  Dark colours
                </Item>
                <Item icon="monitor" value="Colours as the system" onSelect={go(() => setTheme('system'))}>
                  Colours as the system
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
