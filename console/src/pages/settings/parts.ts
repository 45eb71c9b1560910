/** The parts of the settings, in their order. */
export const PARTS = [
  { to: '/settings', name: 'Server' },
  { to: '/settings/skills', name: 'Skills' },
  { to: '/settings/credentials', name: 'Credentials' },
] as const
