/** The playground's settings: a stored agent, or the settings of the next run. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type Settings, settingsOf } from '../agent-form/settings.ts'
import { SettingsForm } from '../agent-form/settings-form.tsx'
import { agentQuery } from '../server/queries.ts'
import { IconButton } from '../ui/button.tsx'
import { AgentPicker } from './agent-picker.tsx'
import type { Origin } from './rerun.ts'

interface RunSettingsPanelProps {
  readonly agentId: string | undefined
  readonly onAgent: (id: string | undefined) => void
  readonly origin: Origin | undefined
  readonly onOrigin: (origin: Origin) => void
  readonly settings: Settings
  readonly onSettings: (settings: Settings) => void
}

export function RunSettingsPanel(props: RunSettingsPanelProps) {
  const { agentId, onAgent, origin, onOrigin, settings, onSettings } = props
  const agent = useQuery({ ...agentQuery(agentId ?? ''), enabled: agentId !== undefined })
  return (
    <div className="grid gap-5 p-4">
      <AgentPicker value={agentId} onChange={onAgent} />
      {origin?.agentId && !agentId && (
        <AgentNotice origin={origin} onDetach={() => onOrigin({ ...origin, agentId: null, agentVersion: null })} />
      )}
      {agentId ? (
        agent.data && <AgentFacts settings={settingsOf(agent.data)} id={agentId} />
      ) : (
        <SettingsForm value={settings} onChange={onSettings} />
      )}
    </div>
  )
}

/** Shown for a repeated run: it counts as a run of its agent, with the configuration below. */
function AgentNotice({ origin, onDetach }: { readonly origin: Origin; readonly onDetach: () => void }) {
  return (
    <p className="flex items-center gap-2 rounded-lg bg-hover py-1 pr-1 pl-3 text-small text-soft">
      <span className="min-w-0 flex-1 truncate">
        As {origin.agentId} v{origin.agentVersion}, with the settings below
      </span>
      <IconButton icon="close" size="small" label="Detach from the agent" onClick={onDetach} />
    </p>
  )
}

function AgentFacts({ settings, id }: { readonly settings: Settings; readonly id: string }) {
  const rows = [
    ['Model', settings.model],
    ['Tools', settings.tools.join(', ') || 'None'],
    ['Skills', settings.skills.join(', ') || 'None'],
    ['Network', typeof settings.network === 'string' ? settings.network : settings.network.allow.join(', ')],
  ]
  return (
    <div className="grid gap-4">
      {settings.systemInstruction && (
        <p className="line-clamp-6 whitespace-pre-wrap text-soft">{settings.systemInstruction}</p>
      )}
      <dl className="grid gap-2">
        {rows.map(([name, value]) => (
          <div key={name} className="grid grid-cols-[5rem_1fr] gap-2">
            <dt className="text-soft">{name}</dt>
            <dd className="break-words">{value}</dd>
          </div>
        ))}
      </dl>
      <Link to="/agents/$id" params={{ id }} className="text-small font-medium text-accent hover:underline">
        Edit agent
      </Link>
    </div>
  )
}
