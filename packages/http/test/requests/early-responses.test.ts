import { expect, test } from 'vitest'
import { type EarlyResponse, prepareEarlyHeaders } from '../../src/index.ts'
import { start } from '../support/start.ts'
