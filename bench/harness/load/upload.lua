-- Stores SIZE bytes, other ones and under another name each time; as a form by POST, or as they are by PUT.
local size = tonumber(os.getenv('SIZE'))
local from = os.getenv('FROM')
local method = os.getenv('METHOD')
local path = os.getenv('TO')
local padding = string.rep(os.getenv('FILL') or 'x', size - 32)
local count = 0

local head = '--bench\r\ncontent-disposition: form-data; name="file"; filename="%s.bin"\r\n\r\n'
local headers = { ['content-type'] = 'multipart/form-data; boundary=bench' }
if os.getenv('TOKEN') then headers['authorization'] = 'Bearer ' .. os.getenv('TOKEN') end

function request()
  count = count + 1
  local name = string.format('%s-%d', from, count)
  local body = string.format('%-32s', name) .. padding
  if method == 'PUT' then return wrk.format('PUT', path .. name .. '.bin', {}, body) end
  return wrk.format('POST', path, headers, string.format(head, name) .. body .. '\r\n--bench--\r\n')
end
