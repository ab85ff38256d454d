import { useOperation } from '../../data.ts';
import { useTexts } from '../../texts.ts';
import {
  daysOf,
  type Filter,
  kindOfCondition,
  kindOfStep,
  kindOfTrigger,
  type Step,
  type Trigger,
  waitParts,
} from './model.ts';

/** Groups and templates in a choice or a sentence; others are shown by their ids. */
const LISTED = 200;

/** Names of the groups and templates of the account, and sentences about triggers and steps. */
export function useWords() {
  const { t, plural } = useTexts();
  const groups =
    useOperation('/web-setup/contacts/subscription-groups', { limit: LISTED }).value?.groups ?? [];
  const templates = useOperation('/web-setup/templates', { limit: LISTED }).value?.templates ?? [];
  const groupName = (id: string) =>
    groups.find(({ subscriptionGroupId }) => subscriptionGroupId === id)?.name ?? id;

  function condition(filter: Filter): string {
    const kind = kindOfCondition(filter);
    const days = daysOf(filter);
    if (kind === 'field')
      return t('sequences.if.field', { field: filter.field ?? '', value: String(filter.value ?? '') });
    if (kind === 'group') return t('sequences.if.group', { group: groupName(filter.group ?? '') });
    if (kind === 'json') return t('sequences.if.json');
    return plural(`sequences.if.${kind}`, days, {});
  }

  return {
    groups,
    /** Those that marketing mail can use. */
    templates: templates.filter(({ type }) => type !== 'transactional'),
    condition,
    trigger: (trigger: Trigger): string => {
      const kind = kindOfTrigger(trigger);
      const { offsetDays = 0 } = trigger;
      if (kind === 'joined' || kind === 'confirmed')
        return t(`sequences.when.${kind}`, { group: groupName(trigger[kind] ?? '') });
      if (kind === 'dateField' && offsetDays !== 0)
        return plural(
          offsetDays > 0 ? 'sequences.when.daysAfter' : 'sequences.when.daysBefore',
          Math.abs(offsetDays),
          { name: trigger.dateField ?? '' },
        );
      return t(`sequences.when.${kind}`, { name: trigger[kind] ?? '' });
    },
    step: (step: Step): string => {
      const { wait = '1d', send, when, otherwise } = step;
      switch (kindOfStep(step)) {
        case 'wait': {
          const { count, text } = waitParts(wait);
          return t('sequences.step.waitFor', { time: plural(text, count, {}) });
        }
        case 'send': {
          const template = templates.find(({ templateId }) => templateId === send?.templateId);
          return send?.subject ?? template?.subject ?? template?.name ?? t('sequences.step.send');
        }
        case 'when': {
          const given = when === undefined ? '' : condition(when);
          return t(otherwise === 'skip' ? 'sequences.step.ifSkip' : 'sequences.step.ifEnd', {
            condition: given,
          });
        }
        default:
          return t('sequences.step.end');
      }
    },
    /** The template or the sender of a message. */
    detail: ({ send }: Step): string => {
      if (send === undefined) return '';
      const template = templates.find(({ templateId }) => templateId === send.templateId);
      return [template?.name, send.from].filter(Boolean).join(' · ');
    },
  };
}

export type Words = ReturnType<typeof useWords>;
