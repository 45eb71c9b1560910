/** The page that creates an agent. */
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { AgentForm } from '../agent-form/agent-form.tsx'
import { NO_SETTINGS, toRequest } from '../agent-form/settings.ts'
import { createAgent } from '../api/sdk.gen.js'
import type { NewAgent } from '../api/types.gen.js'
import { data } from '../server/client.ts'
import { useMayChange } from '../session/session.ts'
import { Page } from '../shell/page.tsx'
import { Button, ButtonLink } from '../ui/button.tsx'
import { toast } from '../ui/toast.tsx'

const FIRST = {
  id: '',
  displayName: '',
  description: '',
  settings: { ...NO_SETTINGS, tools: ['code_execution', 'file_read'] },
}

export default function NewAgentPage() {
  const navigate = useNavigate()
  const cache = useQueryClient()
  const mayChange = useMayChange()
  const create = useMutation({
    mutationFn: (body: NewAgent) => data(createAgent({ body })),
    onSuccess: (agent) => {
      cache.invalidateQueries({ queryKey: ['agents'] })
      toast('Created')
      navigate({ to: '/agents/$id', params: { id: agent.id } })
    },
  })
  return (
    <Page narrow title="New agent" above={<Link to="/agents">Agents</Link>}>
      <AgentForm
        first={FIRST}
        error={create.error}
        onSave={({ id, displayName, description, settings }) =>
          create.mutate({
            ...(id && { id }),
            ...(displayName && { displayName }),
            ...(description && { description }),
            ...toRequest(settings),
          })
        }
        footer={() => (
          <>
            <ButtonLink to="/agents">Cancel</ButtonLink>
            <Button type="submit" look="primary" busy={create.isPending} disabled={!mayChange}>
              Create agent
            </Button>
          </>
        )}
      />
    </Page>
  )
}
