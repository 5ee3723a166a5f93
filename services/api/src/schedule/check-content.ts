import type { MessageContent } from '#contracts/content';
import { placeholdersOf } from '#contracts/placeholders';

/** Names of all parameters that a content needs, each once, in the order of appearance. */
export function placeholdersIn(content: MessageContent): string[] {
  const names = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value === 'string') for (const name of placeholdersOf(value)) names.add(name);
    else if (typeof value === 'object' && value !== null) Object.values(value).forEach(visit);
  };
  visit(content);
  return [...names];
}

export interface ContentFault {
  path: Array<string | number>;
  code: 'button_index_repeated' | 'placeholder_not_allowed' | 'link_not_https' | 'value_invalid';
  detail: string;
}

/** What a schema can't say about the shape of a template. */
export function contentFaults(content: MessageContent): ContentFault[] {
  if (!('template' in content)) return [];
  const { template } = content;
  const faults: ContentFault[] = [];
  const scopes: Array<{ path: Array<string | number>; part: Pick<typeof template, 'header' | 'buttons'> }> = [
    { path: ['template'], part: template },
    ...(template.carousel?.cards ?? []).map((card, index) => ({ path: ['template', 'carousel', 'cards', index], part: card })),
  ];
  for (const { path, part } of scopes) {
    const seen = new Set<number>();
    part.buttons?.forEach((button, position) => {
      if (seen.has(button.index)) {
        faults.push({
          path: [...path, 'buttons', position, 'index'],
          code: 'button_index_repeated',
          detail: `another button has the index ${button.index}`,
        });
      }
      seen.add(button.index);
    });
    const link = mediaLink(part.header);
    // A link that starts with a placeholder can only be judged when it is rendered.
    if (link && !/^https:\/\//i.test(link.value) && !link.value.startsWith('{{')) {
      faults.push({
        path: [...path, 'header', link.kind, 'link'],
        code: 'link_not_https',
        detail: 'the provider fetches https links only',
      });
    }
  }
  return faults;
}

function mediaLink(header: unknown): { kind: string; value: string } | null {
  for (const kind of ['image', 'video', 'document'] as const) {
    const media = (header as Record<string, { link?: string } | undefined> | undefined)?.[kind];
    if (media?.link !== undefined) return { kind, value: media.link };
  }
  return null;
}
