import { useOperation } from '../../data.ts';
import { Card } from '../../parts.tsx';
import { type Texts, useTexts } from '../../texts.ts';
import type { Choices } from './draft-saver.ts';
import { contentOf, variantNames } from './variants.ts';

/** Who receives which variant, in a sentence; '' without a test. */
export function testSentence({ variants = [], test }: Choices, { t, percent, number }: Texts): string {
  if (test === undefined) return '';
  const { share, winner, waitHours } = test;
  return t(`campaigns.variants.summary.${winner}`, {
    share: percent(share, 100),
    count: variants.length,
    hours: waitHours === undefined ? '' : number(waitHours),
  });
}

/** The test of a draft, in the review. */
export function VariantSummary({ choices }: { choices: Choices }) {
  const texts = useTexts();
  const { t } = texts;
  return (
    <Card title={t('campaigns.variants.card')}>
      <div class="card-body">
        <p>{testSentence(choices, texts)}</p>
        <dl class="variant-list">
          {variantNames(choices).map((name, index) => (
            <Summary key={name} name={name} content={contentOf(choices, index)} />
          ))}
        </dl>
      </div>
    </Card>
  );
}

/** The subject of a variant, and the template that it sends. */
function Summary({ name, content }: { name: string; content: Pick<Choices, 'templateId' | 'subject'> }) {
  const { t } = useTexts();
  const { templateId, subject } = content;
  const { value } = useOperation(templateId === undefined ? null : '/web-setup/templates/{templateId}', {
    templateId: templateId ?? '',
  });
  const template = value?.template;
  return (
    <>
      <dt>{name}</dt>
      <dd>
        {subject ?? (template?.subject || t('campaigns.noSubject'))}
        {template !== undefined && <span class="small">{template.name}</span>}
      </dd>
    </>
  );
}

interface VariantTabsProps {
  choices: Choices;
  /** The name of the variant that is shown. */
  current: string;
  /** Opens the page with a variant. */
  address: (name: string) => string;
}

/** Chooses the variant that is previewed and checked. */
export function VariantTabs({ choices, current, address }: VariantTabsProps) {
  const { t } = useTexts();
  return (
    <nav class="segments variant-tabs" aria-label={t('campaigns.variants.shown')}>
      {variantNames(choices).map((name) => (
        <a
          class="segment"
          key={name}
          href={address(name)}
          aria-current={name === current ? 'true' : undefined}
        >
          {t('campaigns.variants.name', { name })}
        </a>
      ))}
    </nav>
  );
}
