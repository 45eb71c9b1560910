/** The models that runs can use, and the health of their providers. */
import { useQuery } from '@tanstack/react-query'
import { ask, type Model } from '../../server/console-api.ts'
import { Page } from '../../shell/page.tsx'
import { Badge } from '../../ui/badge.tsx'
import { ago, cost } from '../../ui/format.ts'
import { Failure, Loading } from '../../ui/states.tsx'

interface Models {
  readonly defaultModel: string
  readonly models: readonly Model[]
}

export default function ModelsPage() {
  const models = useQuery({
    queryKey: ['models'],
    queryFn: () => ask<Models>('GET', '/api/models'),
    refetchInterval: 10_000,
  })
  return (
    <Page
      narrow
      title="Models"
      about="Models that runs can use, as configured by the operator, and the health of their providers."
    >
      <div className="overflow-hidden rounded-xl border bg-card">
        {models.error ? (
          <Failure error={models.error} retry={() => models.refetch()} />
        ) : !models.data ? (
          <div className="px-4 py-3">
            <Loading />
          </div>
        ) : (
          <ul aria-label="Models">
            {models.data.models.map((model) => (
              <Row key={model.name} model={model} isDefault={model.name === models.data.defaultModel} />
            ))}
          </ul>
        )}
      </div>
    </Page>
  )
}

function Row({ model, isDefault }: { readonly model: Model; readonly isDefault: boolean }) {
  const { name, provider, source, demo, vision, documents, searches, price, fallbacks, unavailable, health } = model
  const abilities = [vision && 'images', documents && 'PDFs', searches && 'web search'].filter(Boolean)
  return (
    <li className="grid gap-x-6 gap-y-2 border-t px-4 py-3 first:border-t-0 sm:grid-cols-[minmax(0,1fr)_minmax(0,15rem)]">
      <div className="min-w-0">
        <p className="flex flex-wrap items-center gap-2">
          <code className="font-medium">{name}</code>
          {isDefault && <Badge tone="accent">default</Badge>}
          {abilities.map((ability) => (
            <Badge key={String(ability)}>{ability}</Badge>
          ))}
        </p>
        <p className="mt-0.5 text-soft">
          {demo ? 'Replaced by the built-in demo model' : `${provider}, from ${source}`}
        </p>
        <p className="text-small text-faint">
          {price
            ? `${cost(price.input)} input, ${cost(price.output)} output per million tokens`
            : 'No price configured'}
          {fallbacks.length > 0 && ` · fallback: ${fallbacks.join(', ')}`}
        </p>
      </div>
      <div className="grid content-start gap-2">
        {unavailable ? (
          <p className="text-small text-amber">{unavailable}</p>
        ) : health.length === 0 ? (
          <p className="text-small text-faint">Built in.</p>
        ) : (
          health.map((each) => <Health key={each.node} health={each} />)
        )}
      </div>
    </li>
  )
}

const STATES = {
  up: ['Healthy', 'bg-green'],
  untried: ['Not used yet', 'bg-faint'],
  failing: ['Last call failed', 'bg-amber'],
  resting: ['Paused after failures', 'bg-red'],
} as const

function Health({ health }: { readonly health: Model['health'][number] }) {
  const { node, state, failures, lastFailure, restsUntil } = health
  const [label, color] = STATES[state]
  return (
    <div className="min-w-0">
      <p className="flex items-center gap-2">
        <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${color}`} />
        <span className="font-medium">{label}</span>
        {node && <span className="truncate text-small text-faint">{node}</span>}
      </p>
      {lastFailure && state !== 'up' && (
        <p className="pl-4 text-small text-soft [overflow-wrap:anywhere]">
          {lastFailure.message} {failures > 1 && `${failures} times in a row, `}
          {ago(lastFailure.time)}
          {restsUntil && `; next attempt ${new Date(restsUntil).toLocaleTimeString('en', { hourCycle: 'h23' })}`}
        </p>
      )}
    </div>
  )
}
