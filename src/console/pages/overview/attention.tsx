import type { AttentionResponse } from '../../../http/console/attention-routes.ts';
import type { Data } from '../../data.ts';
import { AttentionList, attentionEntries } from '../../parts/attention-list.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Card, Chip, Loaded } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

/** What needs a person: failures first, each with what waits for it and a link to what to do. */
export function Attention({ data }: { data: Data<AttentionResponse> }) {
  const texts = useTexts();
  const { t, number } = texts;
  return (
    <div class="attention">
      <Loaded data={data}>
        {(value) => {
          const entries = attentionEntries(value, texts);
          const kind = entries.some(({ isBad }) => isBad) ? 'bad' : 'warn';
          return (
            <Card
              title={t('overview.attention')}
              action={entries.length > 0 && <Chip kind={kind}>{number(entries.length)}</Chip>}
            >
              {entries.length === 0 ? (
                <p class="all-well">
                  <Icon name="circle-check" />
                  {t('overview.none.hint')}
                </p>
              ) : (
                <AttentionList label={t('overview.attention')} entries={entries} />
              )}
            </Card>
          );
        }}
      </Loaded>
    </div>
  );
}
