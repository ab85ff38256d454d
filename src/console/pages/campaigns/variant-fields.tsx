import { useEffect, useRef, useState } from 'preact/hooks';
import { useOperation } from '../../data.ts';
import { Field } from '../../parts/field.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Loaded } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';
import type { Choices } from './draft-saver.ts';
import { type OptionName, SearchedChoices, useListed } from './searched-select.tsx';
import {
  FIRST_TEST,
  MAX_SHARE,
  MAX_VARIANTS,
  MAX_WAIT_HOURS,
  type PreparedTest,
  testFaults,
  type Variant,
  variantName,
} from './variants.ts';

interface VariantFieldsProps {
  choices: Choices;
  onChange: (choices: Partial<Choices>) => void;
}

/** The variants of an A/B test besides the mail itself, and how they are tested; folded without a test. */
export function VariantFields({ choices, onChange }: VariantFieldsProps) {
  const { t } = useTexts();
  const { variants = [], test } = choices;
  const [isOpen] = useState(variants.length > 0);
  const summary = useRef<HTMLElement>(null);
  const [isAdded, setAdded] = useState(false);
  const { isSame } = testFaults(choices);
  // A test without variants has no effect.
  const change = (next: Variant[]) =>
    onChange(
      next.length < 2
        ? { variants: undefined, test: undefined }
        : { variants: next, test: test ?? FIRST_TEST },
    );
  return (
    <details class="variants" open={isOpen}>
      <summary ref={summary}>{t('campaigns.variants')}</summary>
      <p class="hint">{t('campaigns.variants.hint')}</p>
      {variants.map((own, index) => {
        const name = variantName(variants, index);
        return index === 0 ? null : (
          <OneVariant
            key={name}
            name={name}
            own={own}
            isSame={isSame(index)}
            isNew={isAdded}
            onChange={(changed) => change(variants.with(index, changed))}
            onRemove={() => {
              change(variants.toSpliced(index, 1));
              summary.current?.focus();
            }}
          />
        );
      })}
      <p>
        <button
          type="button"
          class="button"
          disabled={variants.length >= MAX_VARIANTS}
          onClick={() => {
            setAdded(true);
            change([...(variants.length === 0 ? [{}] : variants), {}]);
          }}
        >
          <Icon name="plus" />
          {t('campaigns.variants.add')}
        </button>
      </p>
      {variants.length > 0 && test !== undefined && (
        <TestFields choices={choices} test={test} onChange={(changed) => onChange({ test: changed })} />
      )}
    </details>
  );
}

interface OneVariantProps {
  name: string;
  own: Variant;
  isSame: boolean;
  /** Whether the person added it now. */
  isNew: boolean;
  onChange: (own: Variant) => void;
  onRemove: () => void;
}

function OneVariant({ name, own, isSame, isNew, onChange, onRemove }: OneVariantProps) {
  const { t } = useTexts();
  const { subject = '', templateId } = own;
  const remove = t('campaigns.variants.remove', { name });
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (isNew) field.current?.focus();
  }, []);
  return (
    <fieldset class="group variant">
      <legend>{t('campaigns.variants.name', { name })}</legend>
      <button
        type="button"
        class="button ghost icon-only"
        aria-label={remove}
        title={remove}
        onClick={onRemove}
      >
        <Icon name="x" />
      </button>
      <Field
        label={t('messages.subject')}
        hint={t('campaigns.variants.subjectHint')}
        {...(isSame ? { error: t('campaigns.variants.same') } : {})}
        isOptional
      >
        {(control) => (
          <input
            {...control}
            ref={field}
            class="input"
            maxLength={998}
            autocomplete="off"
            value={subject}
            onInput={({ currentTarget: { value } }) =>
              onChange(withContent(own, value.trim() === '' ? undefined : value, templateId))
            }
          />
        )}
      </Field>
      <TemplateOfVariant
        templateId={templateId}
        onChange={(chosen) => onChange(withContent(own, own.subject, chosen))}
      />
    </fieldset>
  );
}

/** In the order of the API, in which a stored draft has them. */
function withContent(
  { name }: Variant,
  subject: string | undefined,
  templateId: string | undefined,
): Variant {
  return {
    ...(name === undefined ? {} : { name }),
    ...(subject === undefined ? {} : { subject }),
    ...(templateId === undefined ? {} : { templateId }),
  };
}

interface TemplateOfVariantProps {
  templateId: string | undefined;
  onChange: (templateId: string | undefined) => void;
}

function TemplateOfVariant({ templateId, onChange }: TemplateOfVariantProps) {
  const { t } = useTexts();
  const { data, searching } = useListed((parameters) => useOperation('/web-setup/templates', parameters));
  return (
    <Loaded data={data}>
      {({ templates, nextKey }) => (
        <SearchedChoices
          label={t('campaigns.variants.template')}
          hint={t('campaigns.variants.templateHint')}
          searchLabel={t('campaigns.searchTemplates')}
          of={{
            options: templates
              .filter(({ type }) => type !== 'transactional')
              .map(({ templateId: id, name }) => ({ id, label: name || id })),
            chosen: templateId === undefined ? [] : [templateId],
            max: 1,
            useName: useTemplateName,
            ...searching,
            hasMore: nextKey !== undefined,
            onChange: ([chosen]) => onChange(chosen),
          }}
        />
      )}
    </Loaded>
  );
}

function useTemplateName(id: string): OptionName {
  const { value, error } = useOperation('/web-setup/templates/{templateId}', { templateId: id });
  return { name: value?.template.name, isDeleted: error?.status === 404 };
}

const WINNERS = ['opens', 'clicks', 'none'] as const;

interface TestFieldsProps {
  choices: Choices;
  test: PreparedTest;
  onChange: (test: PreparedTest) => void;
}

function TestFields({ choices, test, onChange }: TestFieldsProps) {
  const { t } = useTexts();
  const { share, winner, waitHours } = test;
  const { isShareWrong, isWaitWrong } = testFaults(choices);
  const choose = (chosen: PreparedTest['winner']) => {
    if (chosen === 'none') return onChange({ share: 100, winner: chosen });
    onChange(winner === 'none' ? { ...FIRST_TEST, winner: chosen } : { ...test, winner: chosen });
  };
  return (
    <div class="variant-test">
      <Field label={t('campaigns.variants.winner')} hint={t(`campaigns.variants.winnerHint.${winner}`)}>
        {(control) => (
          <select
            {...control}
            class="select"
            value={winner}
            onChange={({ currentTarget: { value } }) =>
              choose(WINNERS.find((each) => each === value) ?? winner)
            }
          >
            {WINNERS.map((each) => (
              <option key={each} value={each}>
                {t(`campaigns.variants.winner.${each}`)}
              </option>
            ))}
          </select>
        )}
      </Field>
      {winner !== 'none' && (
        <>
          <NumberField
            label={t('campaigns.variants.share')}
            hint={t('campaigns.variants.shareHint')}
            max={MAX_SHARE}
            value={share}
            isWrong={isShareWrong}
            onChange={(value) => onChange({ ...test, share: value })}
          />
          <NumberField
            label={t('campaigns.variants.wait')}
            hint={t('campaigns.variants.waitHint')}
            max={MAX_WAIT_HOURS}
            value={waitHours ?? Number.NaN}
            isWrong={isWaitWrong}
            onChange={(value) => onChange({ ...test, waitHours: value })}
          />
        </>
      )}
    </div>
  );
}

interface NumberFieldProps {
  label: string;
  hint: string;
  max: number;
  /** NaN: empty, which the server refuses to store. */
  value: number;
  isWrong: boolean;
  onChange: (value: number) => void;
}

function NumberField({ label, hint, max, value, isWrong, onChange }: NumberFieldProps) {
  const { t } = useTexts();
  return (
    <Field
      label={label}
      hint={hint}
      {...(isWrong ? { error: t('campaigns.variants.wholeNumber', { max }) } : {})}
    >
      {(control) => (
        <input
          {...control}
          class="input"
          type="number"
          min={1}
          max={max}
          required
          value={Number.isNaN(value) ? '' : value}
          onInput={({ currentTarget }) => onChange(currentTarget.valueAsNumber)}
        />
      )}
    </Field>
  );
}
