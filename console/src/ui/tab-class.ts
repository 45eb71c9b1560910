/** CSS classes of a tab. */
export const TAB_CLASS =
  '-mb-px h-9 border-b-2 border-transparent px-0.5 text-body font-medium text-soft hover:text-text data-[state=active]:border-accent data-[state=active]:text-text'
